// SPDX-License-Identifier: Apache-2.0
#include "process/process_event.h"

namespace pyrometer {

bool IsAnonymous(std::string_view path) {
  // "[heap]", "[stack]", "[anon:name]", "[uprobes]"; the vDSO alone has a file image.
  if (path.empty() || path.starts_with('[')) return path != kVdsoPath;
  // "//anon" is perf's name for it; shared anonymous memory, System V segments and huge pages
  // are files of an internal mount.
  return path.starts_with("//anon") || path.starts_with("/dev/zero") || path.starts_with("/SYSV") ||
         path.starts_with("/anon_hugepage") || path.starts_with("anon_inode:");
}

}  // namespace pyrometer
