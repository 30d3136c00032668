// SPDX-License-Identifier: Apache-2.0
// unwind_oracle [--window START:INSTRUCTIONS]... [--every N] [--exact PERCENT] COMMAND [ARG...]
//
// Executes COMMAND one instruction at a time and compares the unwinder's stack with the calls that
// were made, before every N-th instruction (1). A window starts at `exec` (the very first
// instruction: in the dynamic linker), at `entry` (the program's own first), or so many seconds
// after the last window; between windows the program runs freely. Without windows: exec, to the
// end. Exit status: 0; 1 if a stack was wrong or fewer than PERCENT (99.95) exact; 2 wrong usage;
// 77 if tracing is not allowed here.
#include <fmt/format.h>
#include <getopt.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/oracle/parse_number.h"
#include "tests/oracle/step_oracle.h"

namespace pyrometer::oracle {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSkipped = 77;

struct Window {
  enum class Start : uint8_t { kExec, kEntry, kLater };
  Start start = Start::kExec;
  std::chrono::milliseconds later{};  // kLater
  uint64_t instructions = ~uint64_t{0};
};

struct Options {
  std::vector<Window> windows;
  uint64_t every = 1;
  double exact_percent = 99.95;
  std::vector<std::string> command;
};

std::optional<Window> ParseWindow(std::string_view text) {
  Window window;
  const size_t colon = text.find(':');
  const std::string_view start = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::optional<uint64_t> instructions = ParseNumber<uint64_t>(text.substr(colon + 1));
    if (!instructions) return std::nullopt;
    window.instructions = *instructions;
  }
  if (start == "exec") return window;
  window.start = Window::Start::kEntry;
  if (start == "entry") return window;
  const std::optional<double> seconds = ParseNumber<double>(start);
  if (!seconds || *seconds < 0) return std::nullopt;
  window.start = Window::Start::kLater;
  window.later = std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
  return window;
}

bool ParseOption(int option, std::string_view value, Options& options) {
  if (option == 'w') {
    const std::optional<Window> window = ParseWindow(value);
    if (window) options.windows.push_back(*window);
    return window.has_value();
  }
  if (option == 'n') {
    options.every = ParseNumber<uint64_t>(value).value_or(0);
    return options.every > 0;
  }
  const std::optional<double> percent = ParseNumber<double>(value);
  options.exact_percent = percent.value_or(0);
  return option == 'e' && percent.has_value();
}

std::optional<Options> ParseArguments(int argc, char** argv) {
  static const option kOptions[] = {{"window", required_argument, nullptr, 'w'},
                                    {"every", required_argument, nullptr, 'n'},
                                    {"exact", required_argument, nullptr, 'e'},
                                    {}};
  Options options;
  while (true) {
    const int option = ::getopt_long(argc, argv, "+", kOptions, nullptr);
    if (option == -1) break;
    if (!ParseOption(option, optarg == nullptr ? "" : optarg, options)) return std::nullopt;
  }
  options.command.assign(argv + optind, argv + argc);
  if (options.windows.empty()) options.windows.emplace_back();
  if (options.command.empty()) return std::nullopt;
  return options;
}

// Brings the program to where the window starts.
Result<TracedProcess::Stop> Begin(const Window& window, TracedProcess& process,
                                  StepOracle& oracle) {
  switch (window.start) {
    case Window::Start::kExec:
      oracle.BeginAtRoot();
      return TracedProcess::Stop::kStepped;
    case Window::Start::kEntry: {
      ASSIGN_OR_RETURN(const TracedProcess::Stop stop, process.RunToEntry());
      oracle.BeginAtRoot();
      return stop;
    }
    case Window::Start::kLater:
      break;
  }
  ASSIGN_OR_RETURN(const TracedProcess::Stop stop, process.RunFor(window.later));
  if (stop == TracedProcess::Stop::kEnded) return stop;
  return oracle.BeginAnywhere();
}

Result<Findings> Observe(const Options& options) {
  ASSIGN_OR_RETURN(TracedProcess process, TracedProcess::Start(options.command));
  TableCache tables;
  StepOracle oracle(process, tables, options.every);
  for (const Window& window : options.windows) {
    ASSIGN_OR_RETURN(const TracedProcess::Stop begun, Begin(window, process, oracle));
    if (begun == TracedProcess::Stop::kEnded) {
      return Fail(ErrorCode::kInvalid, "the program ended before a window began");
    }
    ASSIGN_OR_RETURN(const TracedProcess::Stop stop, oracle.Run(window.instructions));
    if (stop == TracedProcess::Stop::kEnded) break;
  }
  return oracle.findings();
}

int Main(int argc, char** argv) {
  const std::optional<Options> options = ParseArguments(argc, argv);
  if (!options) {
    std::fputs(
        "usage: unwind_oracle [--window exec|entry|SECONDS[:INSTRUCTIONS]]... [--every N] "
        "[--exact PERCENT] COMMAND [ARG...]\n",
        stderr);
    return kUsage;
  }
  const Result<Findings> findings = Observe(*options);
  if (!findings) {
    fmt::print(stderr, "unwind_oracle: {}\n", findings.error().message());
    return findings.error().code() == ErrorCode::kPermission ? kSkipped : kFailed;
  }
  std::fputs(Report(options->command.front(), *findings).c_str(), stdout);
  const bool passed = findings->wrong == 0 && findings->checks() > 0 &&
                      findings->ExactPercent() >= options->exact_percent;
  return passed ? EXIT_SUCCESS : kFailed;
}

}  // namespace
}  // namespace pyrometer::oracle

int main(int argc, char** argv) {
  return pyrometer::oracle::Main(argc, argv);
}
