// SPDX-License-Identifier: Apache-2.0
// The unwinder in a hostile process: registers, stack, mappings, tables and text are all the
// input's. It must end within its budget, with frames of the limit at most.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz_file.h"
#include "unwind/unwinder.h"

namespace pyrometer {
namespace {

constexpr uint64_t kStack = 0x7f0000000000;
constexpr uint32_t kMostSteps = 5'000;

// Takes values off the input; zeros when it is used up.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  T Next() {
    T value{};
    const size_t size = std::min(sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  // At most `limit`.
  size_t Count(size_t limit) { return Next<uint8_t>() % (limit + 1); }
  std::span<const uint8_t> Take(size_t size) {
    const auto taken = bytes_.first(std::min(size, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::span<const uint8_t> rest() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

// Any rule that the compiler of tables may give, and no others: a table is not foreign input, what
// it is made of is (fuzz_unwind_table).
pyro_unwind_rule NextRule(Input& input, size_t exotic) {
  pyro_unwind_rule rule{};
  rule.kind = static_cast<uint8_t>(input.Count(PYRO_RULE_KINDS - 1));
  rule.cfa_register = static_cast<uint8_t>(input.Count(31));
  rule.fp = static_cast<uint8_t>(input.Count(PYRO_SAVED_AT_FP));
  rule.ra = static_cast<uint8_t>(input.Count(PYRO_SAVED_IN_REGISTER));
  rule.cfa_offset = input.Next<int16_t>();
  rule.cfa_add = input.Next<int16_t>();
  rule.fp_offset = input.Next<int16_t>();
  rule.ra_offset = input.Next<int16_t>();
  rule.rbx_offset = input.Next<int16_t>();
  if (rule.ra == PYRO_SAVED_IN_REGISTER) rule.ra_offset &= 31;
  if (rule.kind != PYRO_RULE_EXOTIC) return rule;
  if (exotic == 0) rule.kind = PYRO_RULE_NONE;
  rule.cfa_offset = exotic == 0 ? 0 : static_cast<int32_t>(input.Count(exotic - 1));
  return rule;
}

RegisterRule NextRegisterRule(Input& input) {
  using Kind = RegisterRule::Kind;
  RegisterRule rule;
  rule.kind = static_cast<Kind>(input.Count(static_cast<size_t>(Kind::kValueExpression)));
  rule.reg = static_cast<uint8_t>(input.Count(31));
  rule.offset = input.Next<int16_t>();
  if (rule.kind == Kind::kAtExpression || rule.kind == Kind::kValueExpression) {
    const auto bytes = std::as_bytes(input.Take(input.Count(128)));
    rule.expression.assign(bytes.begin(), bytes.end());
  }
  return rule;
}

ExoticRule NextExotic(Input& input) {
  ExoticRule rule;
  rule.return_address = static_cast<uint8_t>(input.Count(31));
  rule.signal_frame = input.Count(1) != 0;
  do rule.cfa = NextRegisterRule(input);
  while (rule.cfa.kind != RegisterRule::Kind::kInRegister &&
         rule.cfa.kind != RegisterRule::Kind::kValueExpression && !input.rest().empty());
  for (uint8_t reg = 0; reg < kCfiRegisters && input.Count(3) != 0; ++reg) {
    rule.registers.push_back({.reg = reg, .rule = NextRegisterRule(input)});
  }
  return rule;
}

UnwindTable NextTable(Input& input) {
  UnwindTable table;
  const size_t exotic = input.Count(3);
  for (size_t i = 0; i < exotic; ++i) table.exotic.push_back(NextExotic(input));
  table.sparse = input.Count(1) != 0;
  table.rules = {pyro_unwind_rule{}};
  table.pages = {{0, 1}};
  table.rows = {{.pc_low = 0, .rule = 0}};
  const size_t rules = input.Count(15);
  for (size_t i = 1; i <= rules; ++i) {
    table.rules.push_back(NextRule(input, exotic));
    // Of 256 bytes each: so an address is met by chance.
    table.rows.push_back(
        {.pc_low = static_cast<uint16_t>(i << 8), .rule = static_cast<uint16_t>(i)});
    ++table.pages[0].row_count;
  }
  return table;
}

// Mappings of 64 KiB: two objects with a table each, one without, JIT code, unknown, unread. The
// stack repeats the words that the input ends in.
class HostileView : public UnwindView {
 public:
  explicit HostileView(Input& input) : tables_{NextTable(input), NextTable(input)} {
    const auto code = input.Take(input.Count(64));
    code_.assign(code.begin(), code.end());
    stack_bytes_ = size_t{64} * input.Next<uint8_t>();
    stack_.assign(input.rest().begin(), input.rest().end());
  }

  uint64_t calls() const { return calls_; }

  Found Find(Address pc) override {
    ++calls_;
    const uint64_t page = pc.value() >> PYRO_UNWIND_PAGE_SHIFT;
    const ElfAddress address(pc.value() & 0xffff);
    switch (page) {
      case 1:
      case 2:
        return FindIn(tables_[page - 1], address);
      case 3:
        return {.place = Place::kNoTable, .table = nullptr, .rule = nullptr};
      case 4:
        return {.place = Place::kAnonymous, .table = nullptr, .rule = nullptr};
      case 5:
        return {.place = Place::kUnknown, .table = nullptr, .rule = nullptr};
      case 6:
        return {.place = Place::kUnread, .table = nullptr, .rule = nullptr};
      default:
        return {.place = Place::kNowhere, .table = nullptr, .rule = nullptr};
    }
  }

  bool Read(Address address, std::span<std::byte> out) override {
    ++calls_;
    const uint64_t offset = address.value() - kStack;
    if (stack_.empty() || offset > stack_bytes_ || out.size() > stack_bytes_ - offset) return false;
    for (size_t i = 0; i < out.size(); ++i) out[i] = StackByte(offset + i);
    return true;
  }

  bool ReadCode(Address address, std::span<std::byte> out) override {
    ++calls_;
    if (code_.empty()) return false;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>(code_[(address.value() + i) % code_.size()]);
    }
    return true;
  }

 private:
  // Every input word of three bytes is a stack word: an address of code, or (from its highest bit
  // on) of the stack.
  std::byte StackByte(uint64_t offset) const {
    const uint64_t at = offset / 8 * 3 % stack_.size();
    uint64_t word = 0;
    for (size_t i = 0; i < 3; ++i) word |= uint64_t{stack_[(at + i) % stack_.size()]} << (8 * i);
    if ((word & 0x800000) != 0) word = kStack + (word & 0xffff);
    return static_cast<std::byte>(word >> (offset % 8 * 8));
  }

  std::vector<UnwindTable> tables_;
  std::vector<uint8_t> code_;
  std::vector<uint8_t> stack_;
  size_t stack_bytes_ = 0;
  uint64_t calls_ = 0;
};

UserRegisters NextRegisters(Input& input) {
  UserRegisters registers;
  registers.pc = Address(input.Next<uint32_t>() & 0x7ffff);
  for (uint64_t& value : registers.values) {
    const auto word = input.Next<uint16_t>();
    // Odd ones are anything.
    value = (word & 1) == 0 ? kStack + word : input.Next<uint64_t>();
  }
  if (input.Count(7) != 0) registers.values[kStackPointer] = kStack + input.Next<uint8_t>() * 8;
  registers.after_call = input.Count(1) != 0;
  return registers;
}

}  // namespace
}  // namespace pyrometer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  Input input({bytes, size});
  const UserRegisters registers = NextRegisters(input);
  HostileView view(input);
  const UnwindBudget budget = {.most_steps = kMostSteps, .now = [] { return MonotonicTime(0); }};
  const UnwoundStack stack = Unwind(registers, view, budget);
  Require(!stack.frames.empty());
  Require(stack.frames.size() <= PYRO_MAX_USER_FRAMES);
  Require(view.calls() <= kMostSteps);
  Require(!stack.over_budget || stack.end == StackEnd::kTruncated);
  Require(static_cast<size_t>(stack.end) < kStackEnds);
  return 0;
}
