// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dumps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// Of the budget, one file.
constexpr size_t kMostShare = 4;
// Windows for which what was read is kept, whoever needs room.
constexpr uint32_t kOfLate = 6;

bool MayAnswerLater(ErrorCode code) {
  return code == ErrorCode::kExhausted || code == ErrorCode::kInternal || code == ErrorCode::kIo ||
         code == ErrorCode::kLate;
}

}  // namespace

JitDumps::JitDumps(JitDumpSource& source, const Budget& budget, SymbolizerCounts& counts)
    : source_(source), budget_(budget), counts_(counts), to_read_(budget.to_read) {}

void JitDumps::BeginWindow(uint32_t window, MonotonicTime end) {
  window_ = window;
  end_of_earlier_ = std::exchange(end_of_last_, std::exchange(end_, end));
  to_read_ = budget_.to_read;
}

JitDumps::Answer JitDumps::Find(const JitDumpSource::Use& use, Address address,
                                MonotonicTime seen) {
  Entry& entry = entries_[use.file];
  const MonotonicTime at = std::min(use.until, seen);
  if (entry.window != window_) {
    // What a fork has left to a child is asked for as it was then, as long as the child has
    // samples.
    entry.dump.ForgetBefore(std::min(end_of_earlier_, entry.earliest));
    entry.window = window_;
    entry.earliest = at;
    Update(use.file, entry);
  }
  entry.earliest = std::min(entry.earliest, at);
  if (entry.is_behind) return {.found = std::nullopt, .is_behind = true};
  std::optional<JitDump::Found> found = entry.dump.Find(address, at);
  if (!found && use.is_own()) found = entry.dump.Find(address, end_);
  return {.found = found};
}

void JitDumps::Update(JitDumpSource::File file, Entry& entry) {
  entry.is_behind = false;
  const Result<UniqueFd> fd = source_.OpenDump(file);
  if (!fd) {
    entry.is_behind = MayAnswerLater(fd.error().code());
    return;
  }
  if (entry.dump.HasAll(fd->get())) return;
  const JitDump::Losses losses = entry.dump.losses();
  const size_t before = entry.dump.bytes();
  JitDump::Limits limits{.memory = MakeRoomFor(entry), .to_read = to_read_};
  Result<void> result = entry.dump.Update(fd->get(), limits, source_);
  if (!result && result.error().code() == ErrorCode::kInternal) {
    result = entry.dump.Update(fd->get(), limits, source_);  // on where its reader has died
  }
  to_read_ = limits.to_read;
  Resized(before, entry);
  CountLosses(losses, entry.dump.losses());
  if (result) return;
  entry.is_behind = MayAnswerLater(result.error().code());
  if (!entry.is_behind) ++counts_.jit_dumps_unreadable;
}

size_t JitDumps::MakeRoomFor(Entry& entry) {
  const size_t most = budget_.bytes / kMostShare;
  const size_t own = entry.dump.bytes();
  const auto room = [&] { return budget_.bytes - std::min(budget_.bytes, bytes_ - own); };
  std::vector<Entry*> others;
  for (auto& [file, other] : entries_) {
    if (&other != &entry && !other.dump.empty()) others.push_back(&other);
  }
  std::ranges::sort(others, {}, &Entry::window);
  for (Entry* const other : others) {
    if (room() >= most || other->window + kOfLate >= window_) break;
    Evict(*other);
  }
  if (room() >= most) return most;
  std::erase_if(others, [](const Entry* other) { return other->dump.empty(); });
  const size_t equal = budget_.bytes / (others.size() + 1);
  for (Entry* const other : others) {
    const size_t before = other->dump.bytes();
    if (room() >= equal || before <= equal) continue;
    const JitDump::Losses losses = other->dump.losses();
    other->dump.ShrinkBelow(equal);
    Resized(before, *other);
    CountLosses(losses, other->dump.losses());
  }
  return std::min(most, std::max(room(), own));
}

void JitDumps::Resized(size_t before, const Entry& entry) {
  bytes_ += entry.dump.bytes();
  bytes_ -= std::min(bytes_, before);
}

// When it is needed again, the file is read again.
void JitDumps::Evict(Entry& entry) {
  bytes_ -= std::min(bytes_, entry.dump.bytes());
  JitDump empty;
  std::swap(entry.dump, empty);  // an assignment might keep the memory
}

void JitDumps::CountLosses(const JitDump::Losses& before, const JitDump::Losses& after) {
  counts_.bad_jit_dump_records += after.bad_records - before.bad_records;
  counts_.jit_dump_lines_lost += after.lines_left_out - before.lines_left_out;
  counts_.jit_dump_functions_forgotten += after.forgotten - before.forgotten;
  counts_.jit_dump_functions_forgotten += after.past_forgotten - before.past_forgotten;
  counts_.jit_dump_lines_lost += after.lines_forgotten - before.lines_forgotten;
}

void JitDumps::EndWindow(uint32_t unused_since) {
  absl::erase_if(entries_, [=](const auto& entry) { return entry.second.window < unused_since; });
  bytes_ = 0;
  for (const auto& [file, entry] : entries_) bytes_ += entry.dump.bytes();
}

}  // namespace pyrometer
