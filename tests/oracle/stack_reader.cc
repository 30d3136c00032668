// SPDX-License-Identifier: Apache-2.0
// stack_reader PID: unwinds the stack of a process that somebody else has stopped.
//
// Reads one line for each moment: NAME=VALUE for x86_64 registers as gdb names them (those left out
// are 0), orig_rax=-1 unless in a system call. Answers with one line: how the stack ended, a tab,
// and the frames, leaf first, as PC:SP in hexadecimal, parted by blanks.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "tests/oracle/live_view.h"
#include "tests/oracle/parse_number.h"
#include "tests/oracle/table_cache.h"
#include "tests/oracle/traced_process.h"

namespace pyrometer::oracle {
namespace {

using Field = unsigned long long user_regs_struct::*;

struct Register {
  std::string_view name;
  Field field;
};
constexpr Register kRegisters[] = {
    {"rip", &user_regs_struct::rip}, {"rax", &user_regs_struct::rax},
    {"rdx", &user_regs_struct::rdx}, {"rcx", &user_regs_struct::rcx},
    {"rbx", &user_regs_struct::rbx}, {"rsi", &user_regs_struct::rsi},
    {"rdi", &user_regs_struct::rdi}, {"rbp", &user_regs_struct::rbp},
    {"rsp", &user_regs_struct::rsp}, {"r8", &user_regs_struct::r8},
    {"r9", &user_regs_struct::r9},   {"r10", &user_regs_struct::r10},
    {"r11", &user_regs_struct::r11}, {"r12", &user_regs_struct::r12},
    {"r13", &user_regs_struct::r13}, {"r14", &user_regs_struct::r14},
    {"r15", &user_regs_struct::r15}, {"orig_rax", &user_regs_struct::orig_rax}};

// Perhaps negative.
std::optional<uint64_t> ParseValue(std::string_view text) {
  if (const auto value = ParseNumber<uint64_t>(text)) return value;
  if (const auto value = ParseNumber<int64_t>(text)) return static_cast<uint64_t>(*value);
  return std::nullopt;
}

bool SetRegister(std::string_view word, user_regs_struct& registers) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::optional<uint64_t> value = ParseValue(word.substr(equals + 1));
  for (const Register& known : kRegisters) {
    if (known.name != word.substr(0, equals) || !value) continue;
    registers.*known.field = *value;
    return true;
  }
  return false;
}

std::string Answer(const UnwoundStack& stack) {
  std::string line = fmt::format("{}\t", Name(stack.end));
  const char* separator = "";
  for (const UnwoundFrame& frame : stack.frames) {
    line += fmt::format("{}{:x}:{:x}", separator, frame.pc.value(), frame.sp.value());
    separator = " ";
  }
  return line + '\n';
}

int Main(Pid pid) {
  TableCache tables;
  LiveView view(pid, tables);
  for (std::string line; std::getline(std::cin, line);) {
    user_regs_struct registers{};
    registers.orig_rax = ~0ULL;
    for (const std::string_view word : Split(Trim(line), ' ')) {
      if (SetRegister(word, registers)) continue;
      fmt::print(stderr, "stack_reader: no register: {}\n", word);
      return 1;
    }
    view.ForgetMemory();
    view.ForgetMappings();
    std::fputs(Answer(Unwind(ToUserRegisters(registers), view)).c_str(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace pyrometer::oracle

int main(int argc, char** argv) {
  const auto pid = pyrometer::oracle::ParseNumber<uint32_t>(argc == 2 ? argv[1] : "");
  if (!pid) {
    std::fputs("usage: stack_reader PID\n", stderr);
    return 2;
  }
  return pyrometer::oracle::Main(pyrometer::Pid(*pid));
}
