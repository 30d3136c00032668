// SPDX-License-Identifier: Apache-2.0
// A made-up process for the unwinder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "tests/unit/unwind/table_rules.h"
#include "unwind/unwinder.h"

namespace pyrometer {

constexpr uint64_t kCodePage = 0x10000;  // one page of an object with a table
constexpr uint64_t kJit = 0x800000;      // anonymous
constexpr uint64_t kPlain = 0x900000;    // an object without a table
constexpr uint64_t kUnknown = 0xa00000;  // cannot be told now
constexpr uint64_t kUnread = 0xb00000;   // an object whose file could not be read
constexpr uint64_t kStack = 0x7f0000;

constexpr uint8_t kRbp = 6;
constexpr uint8_t kRsp = 7;

// A function of 0x100 bytes for each rule, from kCodePage on.
class FakeView : public UnwindView {
 public:
  FakeView() {
    table_.first_page = kCodePage >> PYRO_UNWIND_PAGE_SHIFT;
    table_.rules = {pyro_unwind_rule{}};
    table_.pages = {{0, 1}};
    table_.rows = {{.pc_low = 0, .rule = 0}};
  }

  // An address inside of a new function with this rule.
  uint64_t Function(const pyro_unwind_rule& rule) {
    const auto number = static_cast<uint16_t>(table_.rules.size());
    table_.rules.push_back(rule);
    table_.rows.push_back({.pc_low = static_cast<uint16_t>(number * 0x100), .rule = number});
    ++table_.pages[0].row_count;
    return kCodePage + number * 0x100U + 0x10;
  }

  void Put(uint64_t address, uint64_t word) { words_[address] = word; }
  // `call *%rax` in front of `return_address`; `call target`.
  void PutCall(uint64_t return_address) {
    code_[return_address] = {std::byte{0xff}, std::byte{0xd0}};
  }
  void PutCall(uint64_t return_address, uint64_t target) {
    const auto distance = static_cast<int32_t>(target - return_address);
    std::vector<std::byte>& code = code_[return_address];
    code = {std::byte{0xe8}, {}, {}, {}, {}};
    std::memcpy(&code[1], &distance, sizeof(distance));
  }
  // An address of the object that no rule covers.
  static uint64_t HandWritten() { return kCodePage + 0x40; }
  void AddExotic(const ExoticRule& rule) { table_.exotic.push_back(rule); }

  int lookups() const { return lookups_; }
  int questions() const { return questions_; }

  Found Find(Address pc) override {
    ++lookups_;
    ++questions_;
    const uint64_t page = pc.value() >> PYRO_UNWIND_PAGE_SHIFT << PYRO_UNWIND_PAGE_SHIFT;
    switch (page) {
      case kCodePage:
        return FindIn(table_, ElfAddress(pc.value()));
      case kJit:
        return {.place = Place::kAnonymous, .table = nullptr, .rule = nullptr};
      case kPlain:
        return {.place = Place::kNoTable, .table = nullptr, .rule = nullptr};
      case kUnknown:
        return {.place = Place::kUnknown, .table = nullptr, .rule = nullptr};
      case kUnread:
        return {.place = Place::kUnread, .table = nullptr, .rule = nullptr};
      default:
        return {.place = Place::kNowhere, .table = nullptr, .rule = nullptr};
    }
  }

  bool ReadCode(Address address, std::span<std::byte> out) override {
    ++questions_;
    std::ranges::fill(out, std::byte{0x90});
    const auto code = code_.find(address.value() + out.size());
    if (code == code_.end()) return true;
    std::ranges::copy(code->second, out.end() - static_cast<long>(code->second.size()));
    return true;
  }

  bool Read(Address address, std::span<std::byte> out) override {
    ++questions_;
    for (size_t i = 0; i < out.size(); i += 8) {
      const auto word = words_.find(address.value() + i);
      if (word == words_.end()) return false;
      std::memcpy(out.data() + i, &word->second, 8);
    }
    return true;
  }

 private:
  UnwindTable table_;
  std::map<uint64_t, uint64_t> words_;
  std::map<uint64_t, std::vector<std::byte>> code_;  // by where it ends
  int lookups_ = 0;
  int questions_ = 0;  // these too
};

// Unwinds its stacks, from kStack on.
class UnwinderTest : public testing::Test {
 protected:
  UnwoundStack UnwindFrom(uint64_t pc) {
    registers_.pc = Address(pc);
    registers_.values[kRsp] = kStack;
    return Unwind(registers_, view_);
  }
  // With 500 words. The first ones, from which the kernel side would choose, are none.
  void FillStack(uint64_t word) {
    for (uint64_t i = 0; i < 500; ++i) view_.Put(kStack + i * 8, i < 128 ? 0x1234 : word);
  }
  uint64_t Bottom() { return view_.Function(RuleOfKind(PYRO_RULE_END)); }

  static std::vector<uint64_t> AddressesOf(const UnwoundStack& stack) {
    std::vector<uint64_t> addresses;
    for (const UnwoundFrame& frame : stack.frames) addresses.push_back(frame.pc.value());
    return addresses;
  }

  FakeView view_;
  UserRegisters registers_;
};

}  // namespace pyrometer
