// SPDX-License-Identifier: Apache-2.0
// What debug information in DWARF 2 to 5 says of the source of code: files, lines and inlined
// calls. https://dwarfstd.org/doc/DWARF5.pdf
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

class DwarfUnitReader;
struct DwarfScope;

// Where the name of a function lies, for DwarfFunctions::NameAt.
struct DwarfName {
  // kEntry: by the offset of its entry; the name is put together of that and the names of the
  // scopes around it. kUnit: likewise, but until the end of the unit only.
  enum class In : uint8_t { kNowhere, kInfo, kStrings, kLineStrings, kEntry, kUnit };
  In in = In::kNowhere;
  bool is_alternate = false;  // it lies in the alternate file
  uint64_t offset = 0;

  auto operator<=>(const DwarfName&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DwarfName& name) {
    return H::combine(std::move(h), name.in, name.is_alternate, name.offset);
  }
};

// A place in the source. `file` is for DwarfFunctions::PathOf.
struct DwarfPlace {
  std::optional<uint32_t> file;
  uint32_t line = 0;  // 0: not known

  bool operator==(const DwarfPlace&) const = default;
};

// A call that was inlined.
struct DwarfInlinedCall {
  DwarfName name{};  // of what was called: mangled, if the compiler has such names
  uint32_t start_line = 0;
  DwarfPlace from{};                 // where it was called
  std::optional<uint32_t> within{};  // another one, before this
};

// What is the same for a range of code.
struct DwarfRow {
  ElfAddress begin{0};
  ElfAddress end{0};
  DwarfPlace place{};
  std::optional<uint32_t> inlined{};  // the innermost call

  bool operator==(const DwarfRow&) const = default;
};

// A function's code without a gap: of one that is in several places, this comes several times.
struct DwarfCode {
  ElfAddress begin{0};
  ElfAddress end{0};
  bool is_function = true;  // else only lines are known
  uint32_t start_line = 0;  // 0: not known
  std::span<const DwarfInlinedCall> calls{};
  std::vector<DwarfRow> rows{};  // ascending, without gaps
};

// A file that has debug information.
struct DwarfFile {
  const ElfFile* elf = nullptr;
  const SectionTable* sections = nullptr;  // its own
  // What it shares with other files (ReadAlternateLink, ElfFile::FromShared); may be null. Names
  // that lie there are not known without it, nor if it cannot be read.
  const ElfFile* alternate = nullptr;
};

// Reads one unit of compilation after the other. Holds one of them, at most 32 MiB, and its lines,
// at most 16, in memory, twice as much while they are put together; of the rest, and of the
// alternate file, some ten megabytes each. One thread.
class DwarfFunctions {
 public:
  struct Counts {
    uint64_t units = 0;
    uint64_t unreadable = 0;  // damaged, too large or of another version: some of it is missing
    uint64_t split = 0;       // whose functions are in another file: only their lines are known
  };
  // False: no more is wanted.
  using Visitor = std::function<bool(const DwarfCode&)>;

  // The files must outlive this; `is_code` says which addresses are code. Errors: kNotFound if
  // there is no debug information; kExhausted if more than `most_inflated` bytes of it are
  // compressed; kUnsupported; those of reading.
  static Result<DwarfFunctions> Open(const DwarfFile& file, std::function<bool(ElfAddress)> is_code,
                                     size_t most_inflated);

  DwarfFunctions(DwarfFunctions&&) noexcept;
  DwarfFunctions& operator=(DwarfFunctions&&) noexcept;
  ~DwarfFunctions();

  // In no order. Damaged units are left out as far as they are. Calls `end_unit` behind the last of
  // each unit. Errors: kExhausted: there are too many units.
  Result<void> ForEach(const Visitor& visit, const std::function<void()>& end_unit = {});

  // Of the unit of what was visited last; `unit_number` tells whether that is another one.
  uint64_t unit_number() const { return counts_.units; }
  std::string PathOf(uint32_t file) const;

  // At most 4096 bytes. In ascending order it costs least.
  std::string NameAt(const DwarfName& name);

  const Counts& counts() const { return counts_; }

 private:
  friend class DwarfUnitReader;
  struct Parts;

  explicit DwarfFunctions(std::unique_ptr<Parts> parts);

  std::string NameOfUnit(uint64_t entry);
  std::string NameOfEntry(const DwarfName& name);
  std::string Qualified(const DwarfName& of, std::span<const DwarfScope> around);

  std::unique_ptr<Parts> parts_;
  Counts counts_;
};

}  // namespace pyrometer
