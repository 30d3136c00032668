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
  // Frames in objects, and addresses: each in some 6 MB. The names of others stay what they were.
  static constexpr size_t kMostFrames = size_t{1} << 17;
  // Addresses of so many programs. Each holds open a directory, and perhaps some jitdumps, of as
  // many as the tracker holds for all: the rest are for those that are recorded later.
  static constexpr size_t kMostPrograms = 64;

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
  // `debug_info`: it is read, so that functions may get lines later.
  explicit RememberedFrames(bool debug_info) : debug_info_(debug_info) {}

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
  Added AddTo(ResolvedWindow& resolved);
  // Takes those out again: what is known of them now. Of code that came to lie there after the
  // frame was seen nothing is said.
  static std::vector<Renamed> TakeOut(const Added& added, NamedWindow& named);

 private:
  struct Addresses {
    ExecId exec;  // those of an earlier program of the process are forgotten
    Frames frames{};
    JitNames names{};  // that may name them
  };

  bool MayGetBetter(Frame::Kind kind, const Location& location) const;
  void NoteObjectFrame(Frame frame, MonotonicTime when, const Objects& objects);
  // Null if nothing can name them, or there are too many programs.
  Addresses* AddressesOf(const Sample& sample, const JitNames& names);
  void ForgetEarlierPrograms(const Window& window);
  void Erase(ProcessKey process);
  static void AddStacks(const Frames& frames, const Program& program, Window& window, Added& added);

  const bool debug_info_;
  size_t address_count_ = 0;
  absl::flat_hash_map<ObjectId, std::shared_ptr<const ObjectInfo>> objects_;
  Frames in_objects_;
  absl::flat_hash_map<ProcessKey, Addresses> addresses_;
};

}  // namespace pyrometer
