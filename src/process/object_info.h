// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// What is known of a mapped file (or the vDSO) without opening it.
struct ObjectInfo {
  enum class Stage {
    kFinal,
    kAwaited,   // its file system has just been asked: most likely it will be kReplaced in a moment
    kReplaced,  // it stood for an object that is known by now, which mappings show instead
  };

  std::string path;  // as its process named it, in that process's root; "[vdso]"; "/memfd:name"
  BuildId build_id;  // empty: none, or unknown
  FileHash hash{};   // see ObjectFacts; unless that is unknown
  std::string go_build_id{};
  bool tells_names = false;
  bool may_tell_sources = false;
  bool named_by_sources = false;
  std::vector<Segment> segments;  // empty: not an ELF file, or never opened
  bool is_vdso = false;
  // False if the file was gone before it could be opened, or its file system has not answered yet:
  // nothing can be read from it, and addresses in it are file offsets and not ELF addresses.
  bool was_opened = false;
  FileIdentity identity = {};  // when it was opened
  Stage stage = Stage::kFinal;
};

// An object's file or a copy of it, for pread only (the offset is shared). Neither reading nor
// closing it waits for a server. Open as long as anybody holds it.
using ObjectFile = std::shared_ptr<const UniqueFd>;

}  // namespace pyrometer
