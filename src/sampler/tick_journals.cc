// SPDX-License-Identifier: Apache-2.0
#include "sampler/tick_journals.h"

#include <algorithm>

namespace pyrometer {
namespace {

constexpr size_t kHead = PYRO_JOURNAL_HEAD;

// Calls `take` for each record, and empties the journal.
void TakeOne(std::span<std::byte> journal, const TickJournals::Take& take) {
  for (std::span<std::byte> rest = journal; rest.size() >= kHead;) {
    const auto& record = *reinterpret_cast<const pyro_journal_record*>(rest.data());
    if (record.time_ns == 0) break;
    const pyro_stack_head& head = record.stack.head;
    const size_t frames = size_t{head.kernel_frames} + head.user_frames;
    const size_t bytes = kHead + frames * sizeof(record.stack.frames[0]);
    if (frames > PYRO_STACK_MEDIUM || bytes > rest.size()) break;
    take(record, {record.stack.frames, frames});
    rest = rest.subspan(bytes);
  }
  reinterpret_cast<pyro_journal_record*>(journal.data())->time_ns = 0;
}

}  // namespace

void TickJournals::TakeAll(uint32_t half, const Take& take) {
  for (size_t at = half * journal_bytes_; at + journal_bytes_ <= memory_.size();
       at += 2 * journal_bytes_) {
    TakeOne(memory_.subspan(at, journal_bytes_), take);
  }
}

}  // namespace pyrometer
