// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "process/object_info.h"
#include "process/resolved_window.h"
#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Frames that got no good name in their window, with what it takes to name them when a recording
// ends: a perf map may have grown by then, and debug information been read. So one function does
// not come out under two names only because it was not sampled again. Not thread-safe.
//
// Kernel addresses are left out: where a module was, another may be by now.
class RememberedFrames {
 public:
  // Frames, in some 12 MB; the names of others stay what they were.
  static constexpr size_t kMostFrames = size_t{1} << 18;
  // Of so many processes; each has a directory held open, and perhaps some jitdumps.
  static constexpr size_t kMostProcesses = 256;

  // Of which user addresses are; of other frames none.
  struct Program {
    ProcessKey process;
    ExecId exec;
  };

  // When a frame was seen, at the end of the first window with it.
  using Frames = absl::flat_hash_map<Frame, MonotonicTime>;

  // What was added to a window: its stacks from `first_stack` on, each of one program.
  struct Added {
    size_t first_frame = 0;
    size_t first_stack = 0;
    std::vector<Program> programs{};
    std::vector<MonotonicTime> seen{};  // by frame
  };

  using Objects = decltype(ResolvedWindow::objects);
  // What names user addresses, see ResolvedWindow.
  struct JitNames {
    decltype(ResolvedWindow::perf_maps) perf_maps = {};
    decltype(ResolvedWindow::inherited) inherited = {};
    decltype(ResolvedWindow::jit_dumps) jit_dumps = {};
  };

  // Remembers those of `named`; `objects` and `names` are what it was named from.
  void Note(const NamedWindow& named, const Objects& objects, const JitNames& names);

  // True if frames in the object are remembered: what names it is still needed.
  bool Needs(ObjectId object) const { return objects_.contains(object); }

  // Adds them all to the last window, in stacks that no sample has.
  Added AddTo(ResolvedWindow& resolved) const;
  // Takes those out again: what is known of them now. Of code that came to lie there after the frame
  // was seen nothing is said.
  static std::vector<Renamed> TakeOut(const Added& added, NamedWindow& named);

 private:
  struct Addresses {
    ExecId exec;  // those of an earlier program of the process are forgotten
    Frames frames;
  };

  void NoteObjectFrame(Frame frame, MonotonicTime when, const Objects& objects);
  void NoteUserAddress(Frame frame, MonotonicTime when, const Sample& sample,
                       const JitNames& names);
  bool Keep(ProcessKey process, const JitNames& names);
  void Insert(Frame frame, MonotonicTime when, Frames& frames);
  static void AddStacks(const Frames& frames, const Program& program, Window& window,
                        Added& added);

  size_t count_ = 0;
  absl::flat_hash_map<ObjectId, std::shared_ptr<const ObjectInfo>> objects_;
  Frames in_objects_;
  absl::flat_hash_map<ProcessKey, Addresses> addresses_;
  JitNames names_;
};

}  // namespace pyrometer
