// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/shadow_stack.h"

#include <algorithm>

namespace pyrometer::oracle {
namespace {

constexpr uint64_t kSlotSize = 8;

Address After(Address slot) {
  return Address(slot.value() + kSlotSize);
}

Address Before(Address return_address) {
  return Address(return_address.value() - 1);
}

}  // namespace

void ShadowStack::Reset(Region region) {
  Reset(region, {});
}

void ShadowStack::Reset(Region region, const std::vector<Call>& calls) {
  strands_.clear();
  region_ = region;
  suspended_ = false;
  Strand& strand = current();
  for (const Call& call : calls) {
    strand.push_back({.slot = call.slot, .return_address = call.return_address, .interrupted = {}});
  }
}

void ShadowStack::Push(Call call) {
  current().push_back(
      {.slot = call.slot, .return_address = call.return_address, .interrupted = {}});
}

void ShadowStack::EnterHandler(Region region, Call frame, const Interrupted& interrupted) {
  // Whatever was left on a signal stack by a jump out of an earlier handler.
  if (region != region_) strands_[region].clear();
  region_ = region;
  suspended_ = false;
  current().push_back(
      {.slot = frame.slot, .return_address = {}, .signal = true, .interrupted = interrupted});
  Push(frame);
}

void ShadowStack::LeaveHandler() {
  Strand& strand = current();
  while (!strand.empty()) {
    const Entry entry = strand.back();
    strand.pop_back();
    if (!entry.signal) continue;
    region_ = entry.interrupted.region;
    return;
  }
}

ShadowStack::Change ShadowStack::Settle(Region region, Address sp, Flow flow,
                                        const ReadWord& read) {
  if (region != region_) return SwitchTo(region, sp, read);
  const Change dropped = DropUnlessRestored(sp, read);
  return std::max(dropped, DropBelow(sp, flow));
}

ShadowStack::Change ShadowStack::SwitchTo(Region region, Address sp, const ReadWord& read) {
  region_ = region;
  suspended_ = false;
  DropBelow(sp, Flow::kJump);
  if (current().empty()) {
    if (const uint64_t word = read(sp); word != 0) {
      Push({.slot = sp, .return_address = Address(word)});
    }
  }
  return Change::kIrregular;
}

ShadowStack::Change ShadowStack::DropBelow(Address sp, Flow flow) {
  Strand& strand = current();
  size_t dropped = 0;
  while (!strand.empty() && strand.back().slot < sp) {
    const bool just_popped = After(strand.back().slot) == sp;
    // rt_sigreturn is called with the stack pointer there, and needs the rest of the frame.
    if (strand.back().signal && just_popped) break;
    if (just_popped && flow == Flow::kSequential) {
      suspended_ = true;
      break;
    }
    strand.pop_back();
    ++dropped;
  }
  if (dropped > 0) suspended_ = false;
  const bool returned = dropped == 1 && flow == Flow::kReturn;
  return dropped == 0 || returned ? Change::kNone : Change::kIrregular;
}

ShadowStack::Change ShadowStack::DropUnlessRestored(Address sp, const ReadWord& read) {
  Strand& strand = current();
  if (!suspended_ || strand.empty() || strand.back().slot < sp) return Change::kNone;
  suspended_ = false;
  if (read(strand.back().slot) == strand.back().return_address.value()) return Change::kNone;
  strand.pop_back();
  return Change::kIrregular;
}

Address ShadowStack::TopSlot() const {
  const auto strand = strands_.find(region_);
  if (strand == strands_.end() || strand->second.empty()) return {};
  return strand->second.back().slot;
}

std::vector<UnwoundFrame> ShadowStack::Frames(Address pc, Address sp) const {
  std::vector<UnwoundFrame> frames{{pc, sp}};
  Region region = region_;
  for (bool more = true; more;) {
    more = false;
    const auto strand = strands_.find(region);
    if (strand == strands_.end()) break;
    for (auto entry = strand->second.rbegin(); entry != strand->second.rend(); ++entry) {
      if (!entry->signal) {
        frames.push_back({Before(entry->return_address), After(entry->slot)});
        continue;
      }
      frames.push_back({entry->interrupted.pc, entry->interrupted.sp});
      if (entry->interrupted.region == region) continue;
      region = entry->interrupted.region;
      more = true;
      break;
    }
  }
  return frames;
}

}  // namespace pyrometer::oracle
