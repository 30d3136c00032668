// SPDX-License-Identifier: Apache-2.0
#include "profiler/cold_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pyrometer {

const ObjectMapping* ColdView::At(Address pc) const {
  if (program_ == nullptr) return nullptr;
  const std::vector<ObjectMapping>& mappings = program_->mappings;
  const auto after = std::ranges::upper_bound(mappings, pc, {}, &ObjectMapping::start);
  if (after == mappings.begin()) return nullptr;
  const ObjectMapping& mapping = *std::prev(after);
  return mapping.Contains(pc) ? &mapping : nullptr;
}

UnwindView::Found ColdView::Find(Address pc) {
  const ObjectMapping* const mapping = At(pc);
  if (mapping == nullptr) {
    const bool all_known = program_ != nullptr && program_->complete;
    const Place place = all_known ? Place::kNowhere : Place::kUnknown;
    return {.place = place, .table = nullptr, .rule = nullptr};
  }
  if (mapping->object == ObjectId(0)) {
    return {.place = Place::kAnonymous, .table = nullptr, .rule = nullptr};
  }
  std::shared_ptr<const UnwindTable> table = tables_.Of(mapping->object);
  if (table == nullptr) {
    pending_ = mapping->object;
    return {.place = Place::kUnknown, .table = nullptr, .rule = nullptr};
  }
  if (table->empty()) {
    const Place place = table->unread ? Place::kUnread : Place::kNoTable;
    return {.place = place, .table = nullptr, .rule = nullptr};
  }
  if (held_.empty() || held_.back() != table) held_.push_back(std::move(table));
  return FindIn(*held_.back(), mapping->ToElfAddress(pc));
}

bool ColdView::Read(Address address, std::span<std::byte> out) {
  const uint64_t begin = sample_.registers[kStackPointer];
  const uint64_t offset = address.value() - begin;
  if (offset > sample_.stack.size() || out.size() > sample_.stack.size() - offset) {
    // More than this is never copied.
    ran_out_ |= address.value() >= begin && offset + out.size() > PYRO_COLD_STACK_BYTES;
    return false;
  }
  if (LiesInAHole(offset) || LiesInAHole(offset + out.size() - 1)) return false;
  std::memcpy(out.data(), sample_.stack.data() + offset, out.size());
  return true;
}

bool ColdView::LiesInAHole(uint64_t offset) const {
  const uint64_t in_first = sample_.registers[kStackPointer] % PYRO_COLD_PIECE;
  return (sample_.stack_holes >> (in_first + offset) / PYRO_COLD_PIECE & 1) != 0;
}

bool ColdView::ReadCode(Address address, std::span<std::byte> out) {
  const ObjectMapping* const mapping = At(address);
  if (mapping == nullptr || mapping->object == ObjectId(0)) return false;
  using Code = UnwindTableSource::Code;
  const Code code = tables_.ReadCode(mapping->object, mapping->ToElfAddress(address), out);
  is_code_late_ |= code == Code::kLate;
  return code == Code::kRead;
}

Frame ColdView::FrameOf(Address pc) const {
  const ObjectMapping* const mapping = At(pc);
  if (mapping == nullptr || mapping->object == ObjectId(0)) return Frame::User(pc);
  const ElfAddress address = mapping->ToElfAddress(pc);
  return Frame::Fits(address) ? Frame::Object(mapping->object, address) : Frame::User(pc);
}

ColdStack UnwindColdSample(const ColdSample& sample, const ProgramMappings* program,
                           UnwindTableSource& tables, const UnwindBudget& budget) {
  ColdView view(sample, program, tables);
  const UserRegisters registers{
      .pc = sample.pc, .values = sample.registers, .after_call = sample.after_call};
  const UnwoundStack unwound = Unwind(registers, view, budget);
  ColdStack stack;
  stack.pending = view.pending();
  stack.over_budget = unwound.over_budget;
  stack.end =
      unwound.end == StackEnd::kUnreadable && view.ran_out() ? StackEnd::kTruncated : unwound.end;
  stack.code_late = stack.end == StackEnd::kNotReady && view.IsCodeLate();
  stack.frames.reserve(unwound.frames.size());
  for (const UnwoundFrame& frame : unwound.frames) {
    stack.frames.push_back(view.FrameOf(frame.pc));
  }
  return stack;
}

}  // namespace pyrometer
