// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/helper_thread.h"
#include "debuginfo/dwarf_file.h"
#include "debuginfo/dwarf_program.h"
#include "debuginfo/dwarf_unit_reader.h"
#include "debuginfo/source_recording.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// Reads the units of a file on two threads: this one and a helper, which take turns at parts of
// .debug_info. What they find is recorded, and told to the sink part by part in the order of the
// file, by whichever thread has just read the part that is next: so the sink is told the same
// scopes and sequences, each in the same order, as by one thread; some texts it may be told once
// more, since each thread knows only which ones it has told itself.
class DwarfTeam {
 public:
  // Parts that were read and wait for an earlier one.
  static constexpr size_t kMostWaiting = 4;
  // A part of which more is found than this is told before it is read to its end, when its turn
  // has come: in sizes of parts. Compilers write a quarter of that.
  static constexpr size_t kMuch = 4;
  // A unit of more bytes is read when its turn has come, so that no two such take memory at a time.
  static constexpr uint64_t kLarge = uint64_t{32} << 20;

  // All must outlive this.
  struct Parts {
    DwarfFile& file;
    std::span<const Segment> segments;
    SourceSink& sink;
    HelperThread& helper;
  };
  DwarfTeam(const Parts& parts, const DwarfOptions& options);
  ~DwarfTeam();

  DwarfCounts ReadAll();

 private:
  // One of the two threads.
  class Member;
  struct Part {
    uint64_t number = 0;  // parts are counted from 0
    uint64_t begin = 0;   // of its units, in .debug_info
    uint64_t end = 0;
  };
  struct Finding {
    Member* member = nullptr;
    SourceRecording recording;
    DwarfCounts counts;
  };

  void Work(Member& member);
  std::optional<Part> NextPart(DwarfFile& file);
  void Finish(Member& member, const DwarfCounts& counts);
  void AwaitTurn(uint64_t part);
  void TellSoFar(Member& member);
  void Tell(Finding finding);

  const Parts parts_;
  const DwarfOptions options_;
  // The helper's, which has places of its own in the sections.
  std::unique_ptr<DwarfFile> other_supplement_;
  DwarfFile other_file_;

  std::mutex next_mutex_;
  uint64_t next_ = 0;         // where the next part begins; guarded by next_mutex_
  uint64_t next_number_ = 0;  // likewise

  std::mutex turn_mutex_;
  std::condition_variable turn_changed_;
  uint64_t turn_ = 0;                    // the part to be told next; guarded by turn_mutex_
  std::map<uint64_t, Finding> waiting_;  // by the number of their parts; likewise

  std::atomic<bool> is_full_ = false;  // the sink
  // Of the thread that has read the part whose turn it is.
  RecordingPlayer player_;
  DwarfCounts counts_;
};

}  // namespace pyrometer
