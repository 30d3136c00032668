// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where distributions install the separate debug file of an object with this build id:
// "/usr/lib/debug/.build-id/ab/cdef0123.debug". Empty if the build id has fewer than two bytes.
// Convention: GDB manual, "Debugging Information in Separate Files".
std::string DebugFilePath(const BuildId& build_id);

// What .gnu_debuglink says of the separate debug file.
struct DebugLink {
  static constexpr size_t kMostName = 255;  // bytes, of a file on any file system
  std::string name;                         // without directories
  uint32_t checksum = 0;                    // of its whole content, see ChecksumOf()

  // Else the name leads nowhere, or elsewhere.
  bool is_valid() const;
};

// Names the file with what a file's debug information shares with others':
// https://sourceware.org/dwz/
struct AlternateLink {
  static constexpr size_t kMostName = 4096;  // bytes
  std::string name;    // a path; one that is relative begins where the file with the link lies
  BuildId build_id{};  // of the file of that name

  bool is_valid() const;
};

// Reads the link of `elf`, which is a file with debug information. Sections:
// .gnu_debugaltlink, as dwz has it, or .debug_sup (DWARF 5, section 7.3.6). Errors: kNotFound if it
// has none; kMalformed if that has no name of 1 to 4096 bytes and no build id of 1 to 64; those of
// ReadSection.
Result<AlternateLink> ReadAlternateLink(const ElfFile& elf, const SectionTable& sections);

// The build id by which links name an alternate file, which is `elf`: that in its note, or, as `dwz
// --dwarf-5` writes none, that in its .debug_sup. Empty if there is none.
BuildId ReadAlternateId(const ElfFile& elf, const SectionTable& sections);

// Whether this is a path below /usr/lib/debug that leads nowhere else, but for links there.
bool IsDebugPath(std::string_view path);

// Where the alternate file may lie to which the file at `path` refers: by its build id, then by its
// name, if that is an IsDebugPath(): debug information may name any path.
std::vector<std::string> AlternatePaths(std::string_view path, const AlternateLink& link);

// Where a file says its debug information to be.
struct DebugLinks {
  bool has_debug_info = false;  // it has it itself
  std::optional<DebugLink> debug_file{};
  std::optional<AlternateLink> alternate{};  // of what it has itself
  BuildId as_alternate{};                    // see ReadAlternateId()
};

// `elf` may be ElfFile::FromShared(). Errors: those of SectionTable. A link that makes no sense is
// none.
Result<DebugLinks> ReadDebugLinks(const ElfFile& elf);

// Where the debug file of a program or library at `path` may lie that is called `name`, in the
// order of the GDB manual: beside it, in .debug beside it, and below /usr/lib/debug. None if `path`
// does not begin with "/".
std::vector<std::string> DebugLinkPaths(std::string_view path, std::string_view name);

// The checksum that a debug link has of a file: CRC-32 as in zlib. Reads it all. Errors: kIo.
Result<uint32_t> ChecksumOf(const ByteSource& file);

}  // namespace pyrometer
