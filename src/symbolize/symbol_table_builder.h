// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/spilled_bytes.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/source_record.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// A function as declared in a file's symbol table.
struct DeclaredFunction {
  enum class Binding : uint8_t { kGlobal, kWeak, kLocal };  // best first

  ElfAddress start;
  uint64_t size = 0;  // 0: not declared
  ElfAddress limit;   // where it ends at the latest: the end of its section or segment
  Binding binding = Binding::kGlobal;
  bool typed = true;  // STT_FUNC, STT_GNU_IFUNC; false: only a label in code
};

// Decides which function each address belongs to, and its name:
// - A function without a size extends to the next start of any function, to code that AddCode()
//   knows to begin, or to its limit, whichever comes first, and yields to a function with a size
//   that covers its start.
// - Of functions with equal ranges those of the best kind are kept: typed before label, then global
//   before weak before local. By BetterName one is chosen when the table is asked, of the first 64
//   in the file's table of names. So the order of Add calls does not matter.
// - Functions inside functions are kept, up to 32 deep.
// Takes 16 bytes a function while it works. Names go where the table is kept.
class SymbolTableBuilder {
 public:
  // Functions below `base`, or more than 4 GiB above it, are left out.
  SymbolTableBuilder(ElfAddress base, const SymbolTableOptions& options);

  // Memory for so many functions is not allocated in several steps.
  void Reserve(uint64_t functions);

  // `name` says where the name is in the file's table of names. More than 4 million are too many.
  void Add(const DeclaredFunction& function, uint32_t name);

  // What is known of code without a symbol, where no function that was added covers it: what it is,
  // or only where a function lies. REQUIRES: sorted by `begin`, disjoint.
  enum class Code : uint8_t { kUnnamed, kPlt, kInit, kFini, kStart };
  struct KnownCode {
    CodeRange range;
    Code code = Code::kUnnamed;
  };
  void AddCode(std::span<const KnownCode> code);

  // Stubs through which functions of other files are called. `function` says where that function's
  // name is in the file's table of names; the stub is called name@plt, without a symbol's version.
  // Where a function that was added covers a stub, the function counts; a stub covers what
  // AddCode() knows. One whose name cannot be read, or has more than kMaxNameLength with the mark,
  // is left out. REQUIRES: as for AddCode(); called at most once.
  using NameReader = absl::FunctionRef<Result<std::string_view>(uint32_t)>;
  struct Stub {
    CodeRange range;
    uint32_t function = 0;
  };
  void AddStubs(std::span<const Stub> stubs, NameReader read);

  // True if a function without a size extends so far that there may well be others in it.
  static constexpr uint32_t kLongUnsized = 128;  // bytes
  bool HasLongUnsized();

  // Reads the names of the functions added since the last call, in ascending order of where they
  // are. A function whose name cannot be read is left out, and so are labels that are not meant as
  // names of code.
  void ReadNames(NameReader read);

  // Forgets the functions added since the last ReadNames().
  void ForgetUnnamed() { functions_.resize(named_); }

  // What is known of the source of the function that lies in `range`. False: there is no room for
  // more. In a table without debug information what has room without sources has room with them,
  // and of texts the first 4 MiB count; with it, 64. Of several that begin at one place the first
  // counts. REQUIRES: they come behind the names of all functions; PutText() for each text that a
  // record names. Of a text the first 4096 bytes count.
  bool AddSource(const CodeRange& range, const SourceRecord& record);
  void PutText(uint32_t number, std::string_view text);

  bool empty() const { return functions_.empty(); }
  bool has_sources() const { return !sources_.empty(); }

  // That so many bytes of debug information were left out.
  void NoteUnread(uint64_t bytes) { unread_debug_info_ = bytes; }

  // REQUIRES: all names were read. Errors: kExhausted if there were too many functions, or no room.
  Result<SymbolTable> Build() &&;

 private:
  struct Function {
    uint32_t start = 0;  // relative to base_
    uint32_t size = 0;   // up to the limit if not sized
    uint32_t name = 0;   // st_name; once it is read, where it is kept
    DeclaredFunction::Binding binding = DeclaredFunction::Binding::kGlobal;
    bool typed = true;
    bool sized = true;
    bool merged = false;  // is not of the file's symbols; while it is merged with these

    uint64_t end() const { return uint64_t{start} + size; }
  };
  // A name that was read.
  struct ReadName {
    uint32_t offset = 0;  // in the file's table of names
    uint32_t size = 0;
    uint32_t kept_at = 0;
  };

  static uint32_t NameOf(Code code);
  static bool Before(const Function& a, const Function& b);
  static bool IsOfOneKind(const Function& a, const Function& b);
  static bool IsPrivateLabel(const Function& function, std::string_view name);
  std::optional<Function> Placed(const CodeRange& range) const;
  void KeepStubNames(NameReader read);
  uint32_t Keep(uint32_t offset, std::string_view name, std::string_view mark, ReadName& last);
  void Write(std::span<const std::byte> bytes);
  void Flush();
  void EndUnsizedAtNext();
  void EndUnsizedAtCode();
  void DropCoveredAndAliases();
  void Merge(std::span<const Function> code);
  void WriteEntries(SymbolTable& table);
  void SortSources();
  void WriteSources(SymbolTable& table);

  const uint64_t base_;
  const uint64_t most_with_sources_;
  const uint64_t most_text_bytes_;
  std::vector<Function> functions_;
  size_t named_ = 0;  // of these, the first
  std::vector<Function> stubs_;
  std::vector<Function> code_;
  std::vector<SymbolTable::Source> sources_;
  uint64_t unread_debug_info_ = 0;
  uint64_t text_bytes_ = 0;
  std::vector<uint32_t> texts_;  // where they are kept
  SymbolByteSink* const sink_;   // null: stored_ gets all
  std::shared_ptr<SpilledBytes> stored_;
  uint64_t put_ = 0;               // bytes that these have got
  std::vector<std::byte> buffer_;  // what follows them
  bool has_room_ = true;
};

}  // namespace pyrometer
