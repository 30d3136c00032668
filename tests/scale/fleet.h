// SPDX-License-Identifier: Apache-2.0
// Containers that do not run: their files and the /proc of their first processes are real, so that
// the engine can open them; all that would happen in them is made up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "process/process_event.h"
#include "pyrometer/ids.h"
#include "tests/scale/shared_object.h"

namespace pyrometer::scale {

// How large the machine is, and how much happens.
struct Scale {
  uint32_t cpus = 256;
  uint32_t threads = 100'000;
  uint32_t containers = 2'000;
  uint32_t files = 50;  // of each container
  uint32_t processes_per_day = 500'000;
  uint32_t days = 10;
  uint32_t window_seconds = 10;
};

// A file as processes of its container name it. Files of equal texts are equal; see SharedObject().
// Every fifth text has no build id.
struct ContainerFile {
  std::string text;
  MappedFile named;
};

struct Container {
  std::string root;
  std::string image;  // the texts of its own files begin with that, others' with kBase
  std::vector<ContainerFile> files;
  Pid main;  // the first process in it
  StartTime start;
  ExecId exec;
  uint64_t base = 0;  // where `main` maps its files
  std::vector<Tid> threads;
  MonotonicTime began;
};

inline constexpr const char* kBase = "base";

// The range of the i-th file of a process that maps them from `base` on.
FileMapping RangeOf(uint64_t base, size_t file);

// Directories of containers, and a /proc. Removes all of it at the end.
class Fleet {
 public:
  // 40 containers share an image, a tenth of whose files are the same in all images.
  static constexpr uint32_t kSharing = 40;

  explicit Fleet(const Scale& scale);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  Procfs procfs() const { return {.root = directory_ + "/proc", .sys = directory_ + "/sys"}; }

  // The files of a container, as release `release` of its image has them.
  Container Deploy(uint32_t number, uint32_t release);
  // Its first process, whose pid and start are known by now, as /proc shows it.
  void ShowMain(const Container& container) const;
  void Remove(const Container& container) const;

 private:
  void WriteProc(Pid pid, StartTime start, const std::string& root, const std::string& maps) const;

  const Scale scale_;
  std::string directory_;
  uint64_t deployed_ = 0;
};

}  // namespace pyrometer::scale
