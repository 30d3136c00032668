// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_team.h"

#include <utility>

namespace pyrometer {
namespace {

std::unique_ptr<DwarfFile> Another(const DwarfFile* file) {
  if (file == nullptr) return nullptr;
  return std::make_unique<DwarfFile>(file->shared_sections(), DwarfFile::Others());
}

}  // namespace

class DwarfTeam::Member {
 public:
  Member(DwarfTeam& team, DwarfFile& file)
      : file_(file),
        recording_(
            kMuch * team.options_.part, [this, &team] { team.TellSoFar(*this); },
            [&team] { return team.is_full_.load(std::memory_order_relaxed); }),
        reader_({.file = file,
                 .segments = team.parts_.segments,
                 .sink = recording_,
                 .listener = &recording_},
                team.options_) {}

  DwarfCounts Read(const Part& part) {
    number_ = part.number;
    recording_.BeginPart();
    return reader_.Read(part.begin, part.end);
  }

  DwarfFile& file() { return file_; }
  SourceRecording TakeRecording() { return recording_.Take(); }
  RecordingPlayer::Texts& texts() { return texts_; }
  uint64_t number() const { return number_; }

 private:
  DwarfFile& file_;
  RecordingSink recording_;
  DwarfUnitReader reader_;
  RecordingPlayer::Texts texts_;
  uint64_t number_ = 0;  // of the part being read
};

DwarfTeam::DwarfTeam(const Parts& parts, const DwarfOptions& options)
    : parts_(parts),
      options_(options),
      other_supplement_(Another(parts.file.others().supplement)),
      other_file_(parts.file.shared_sections(), {.supplement = other_supplement_.get()}),
      player_(parts.sink) {}

DwarfTeam::~DwarfTeam() = default;

DwarfCounts DwarfTeam::ReadAll() {
  Member own(*this, parts_.file);
  Member other(*this, other_file_);
  parts_.helper.Begin([this, &other] { Work(other); });
  Work(own);
  parts_.helper.Await();
  counts_.rows = player_.rows();
  counts_.malformed += player_.malformed_programs();
  return counts_;
}

void DwarfTeam::Work(Member& member) {
  while (const std::optional<Part> part = NextPart(member.file())) {
    if (part->end - part->begin > kLarge) AwaitTurn(part->number);
    const DwarfCounts counts = member.Read(*part);
    Finish(member, counts);
  }
}

// Whole units, as many as are read with the first one.
std::optional<DwarfTeam::Part> DwarfTeam::NextPart(DwarfFile& file) {
  const uint64_t size = file.sections().Of(DwarfSection::kInfo).size();
  const std::lock_guard lock(next_mutex_);
  if (next_ >= size || is_full_.load(std::memory_order_relaxed)) return std::nullopt;
  Part part{.number = next_number_++, .begin = next_, .end = next_};
  const uint64_t at_most = part.begin + options_.part;
  do {
    DwarfUnitHeader header;
    const Result<void> read = file.ReadHeader(part.end, header);
    const bool is_lost = !read && read.error().code() != ErrorCode::kUnsupported;
    const uint64_t end = is_lost ? size : header.end;  // the reader of the part comes upon it
    if (end > at_most && part.end > part.begin) break;
    part.end = end;
  } while (part.end < size && part.end + kMostOfUnitHeader <= at_most);
  next_ = part.end;
  return part;
}

void DwarfTeam::Finish(Member& member, const DwarfCounts& counts) {
  Finding finding{.member = &member, .recording = member.TakeRecording(), .counts = counts};
  std::unique_lock lock(turn_mutex_);
  turn_changed_.wait(lock,
                     [&] { return turn_ == member.number() || waiting_.size() < kMostWaiting; });
  waiting_.emplace(member.number(), std::move(finding));
  if (turn_ != member.number()) return;
  for (auto next = waiting_.find(turn_); next != waiting_.end(); next = waiting_.find(++turn_)) {
    auto node = waiting_.extract(next);
    lock.unlock();
    Tell(std::move(node.mapped()));
    lock.lock();
  }
  turn_changed_.notify_all();
}

void DwarfTeam::AwaitTurn(uint64_t part) {
  std::unique_lock lock(turn_mutex_);
  turn_changed_.wait(lock, [&] { return turn_ == part; });
}

// Of a part of which much is found, and that is not read to its end.
void DwarfTeam::TellSoFar(Member& member) {
  AwaitTurn(member.number());
  Tell({.member = &member, .recording = member.TakeRecording(), .counts = {}});
}

void DwarfTeam::Tell(Finding finding) {
  if (counts_.is_cut) return;  // nothing that comes after what was too much is told
  player_.Play(std::move(finding.recording), finding.member->texts());
  counts_.units += finding.counts.units;
  counts_.missing += finding.counts.missing;
  counts_.functions += finding.counts.functions;
  counts_.inlined_calls += finding.counts.inlined_calls;
  counts_.malformed += finding.counts.malformed;
  counts_.unsupported += finding.counts.unsupported;
  counts_.is_cut = parts_.sink.is_full();
  is_full_.store(counts_.is_cut, std::memory_order_relaxed);
}

}  // namespace pyrometer
