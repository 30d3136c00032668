// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "process/process_directory.h"
#include "process/process_observer.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {

// A process 18 with this text in its file `cgroup`, which runs /usr/bin/x.
class InCgroup {
 public:
  explicit InCgroup(std::string_view cgroups) {
    tree_.File("proc/18/stat",
               "18 (x) S 1 18 18 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
    tree_.File("proc/18/cgroup", cgroups);
    tree_.Link("proc/18/exe", "/usr/bin/x (deleted)");
    directory_ = *ProcessDirectory::Open(tree_.AsProcfs(), Pid(18));
  }

  SeenProcess Seen(std::string_view comm) const {
    return {.key = {Pid(18), StartTime(1)},
            .comm = comm,
            .directory = &*directory_,
            .inherited = nullptr};
  }

  Procfs procfs() const { return tree_.AsProcfs(); }

 private:
  TemporaryTree tree_;
  std::optional<ProcessDirectory> directory_;
};

}  // namespace pyrometer
