// SPDX-License-Identifier: Apache-2.0
#include "profile/top.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "profile/shown_stacks.h"
#include "profile/text.h"

namespace pyrometer {
namespace {

constexpr size_t kWide = 120;

struct FunctionRow {
  const ShownFrame* frame = nullptr;
  uint64_t self = 0;
  uint64_t total = 0;
};

struct ProcessRow {
  std::string name;
  uint64_t samples = 0;
  absl::flat_hash_set<ProcessKey> processes;
};

// Whether it was inlined makes no other function.
void ToFunction(ShownFrame& frame) {
  frame.inlined = false;
}

// Every function of the profile; the busiest ones first.
std::vector<FunctionRow> CountFunctions(const ShownStacks& shown) {
  std::vector<FunctionRow> rows(shown.frames().size());
  std::vector<size_t> last_stack(rows.size(), 0);  // 1 + the stack it was last counted in
  for (size_t i = 0; i < rows.size(); ++i) rows[i].frame = &shown.frames()[i];
  for (size_t i = 0; i < shown.stacks().size(); ++i) {
    const ShownStacks::Stack& stack = shown.stacks()[i];
    const auto frames = shown.FramesOf(stack);
    for (const uint32_t id : frames) {
      if (last_stack[id] == i + 1) continue;
      last_stack[id] = i + 1;
      rows[id].total += stack.samples;
    }
    rows[frames.back()].self += stack.samples;
  }
  std::erase_if(rows, [](const FunctionRow& row) {
    return row.frame->kind == ShownFrame::Kind::kProcess ||
           row.frame->kind == ShownFrame::Kind::kCut;
  });
  std::sort(rows.begin(), rows.end(), [](const FunctionRow& a, const FunctionRow& b) {
    return std::tuple(b.self, b.total, *a.frame) < std::tuple(a.self, a.total, *b.frame);
  });
  return rows;
}

std::vector<ProcessRow> CountProcesses(const Profile& profile) {
  absl::flat_hash_map<std::string, ProcessRow> by_name;
  for (const ProfileSample& sample : profile.samples) {
    ProcessRow& row = by_name[Printable(ProcessNameOf(sample))];
    row.samples += sample.count;
    row.processes.insert(sample.process);
  }
  std::vector<ProcessRow> rows;
  for (auto& [name, row] : by_name) {
    rows.push_back(std::move(row));
    rows.back().name = name;
  }
  std::sort(rows.begin(), rows.end(), [](const ProcessRow& a, const ProcessRow& b) {
    return std::tie(b.samples, a.name) < std::tie(a.samples, b.name);
  });
  return rows;
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string_view MarkOf(ShownFrame::Kind kind) {
  if (kind == ShownFrame::Kind::kKernel) return "[k]";
  return kind == ShownFrame::Kind::kJit ? "[j]" : "   ";
}

// The whole table in one place: header, rows, and how many rows were left out.
class TopText {
 public:
  TopText(const Profile& profile, const TopOptions& options)
      : profile_(profile), options_(options), width_(std::max<size_t>(options.width, 80)) {}

  std::string Write() && {
    WriteHeader();
    if (totals_.samples == 0) return std::move(text_);
    WriteFunctions();
    WriteProcesses();
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void WriteHeader() {
    Add("{} samples in {:.1f} s ", WithThousands(totals_.samples), Seconds(profile_.duration));
    if (event_.counted) {
      const uint64_t period = profile_.event_period;
      Add("for {} of {} {}", period == 1 ? "each" : "every " + WithThousands(period),
          WithThousands(totals_.value), event_.noun);
    } else {
      Add("at {} Hz ({:.1f} s of {})", profile_.frequency.value,
          Seconds(std::chrono::nanoseconds(totals_.value)), event_.noun);
    }
    if (totals_.cut > 0) {
      Add("; {:.1f} % of the stacks are cut", Percent(totals_.cut, totals_.samples));
    }
    Add("\n");
  }

  // Columns: self %, self, total %, total, mark, then what is left for the names. Where it is wide
  // and sources are known, where in these a function begins.
  void WriteFunctions() {
    const ShownStacks shown(profile_, ToFunction);
    const std::vector<FunctionRow> rows = CountFunctions(shown);
    const auto shown_rows = std::span(rows).first(std::min(rows.size(), options_.functions));
    const bool has_sources = std::ranges::any_of(
        shown_rows, [](const FunctionRow& row) { return !row.frame->source.empty(); });
    constexpr size_t kPercent = 8;
    constexpr size_t kMark = 6;                                    // with the blanks around it
    const size_t object_width = std::max<size_t>(width_ / 6, 17);  // "[kernel.kallsyms]"
    // "scheduler_linux.go:1234"
    const size_t source_width = has_sources && width_ >= kWide ? width_ / 6 : 0;
    const size_t for_source = source_width == 0 ? 0 : source_width + 2;
    const size_t name_width =
        width_ - 2 * (kPercent + count_width_) - kMark - 2 - object_width - for_source;
    Add("\n{:>8}{:>{}}{:>8}{:>{}}      ", "SELF", "samples", count_width_, "TOTAL", "samples",
        count_width_);
    WriteColumns({{"FUNCTION", name_width},
                  {"OBJECT", object_width},
                  {for_source == 0 ? "" : "SOURCE", source_width}});
    for (const FunctionRow& row : shown_rows) {
      const ShownFrame& frame = *row.frame;
      WriteCount(row.self);
      WriteCount(row.total);
      Add("  {} ", MarkOf(frame.kind));
      WriteColumns({{Shorten(frame.name, name_width), name_width},
                    {Shorten(BaseName(frame.object), object_width), object_width},
                    {Shorten(BaseName(frame.source), source_width), source_width}});
    }
    WriteLeftOut(rows.size(), options_.functions, "functions");
  }

  void WriteCount(uint64_t samples) {
    Add("{:>6.1f} %{:>{}}", Percent(samples, totals_.samples), WithThousands(samples),
        count_width_);
  }

  // Each text in its column; lines end without blanks.
  void WriteColumns(std::initializer_list<std::pair<std::string, size_t>> columns) {
    size_t blanks = 0;
    for (const auto& [text, width] : columns) {
      if (!text.empty()) {
        Add("{:{}}{}", "", blanks, text);
        blanks = 0;
      }
      blanks += width + 2 - std::min(CodePoints(text), width);
    }
    Add("\n");
  }

  void WriteProcesses() {
    const std::vector<ProcessRow> rows = CountProcesses(profile_);
    Add("\n{:>8}{:>{}}  {}\n", event_.counted ? "SHARE" : "CPU", "samples", count_width_,
        "PROCESS");
    for (size_t i = 0; i < std::min(rows.size(), options_.processes); ++i) {
      const ProcessRow& row = rows[i];
      WriteCount(row.samples);
      Add("  {}", Shorten(row.name, width_ - 50));
      if (row.processes.size() > 1) {
        Add(" ({} processes)\n", WithThousands(row.processes.size()));
      } else {
        Add(" ({})\n", row.processes.begin()->pid.value());
      }
    }
    WriteLeftOut(rows.size(), options_.processes, "process names");
  }

  void WriteLeftOut(size_t rows, size_t shown, std::string_view what) {
    if (rows > shown) {
      Add("{:>{}}  {} more {}\n", "...", 8 + count_width_, WithThousands(rows - shown), what);
    }
  }

  const Profile& profile_;
  const TopOptions& options_;
  const size_t width_;
  const EventFacts& event_ = FactsOf(profile_.event);
  const SampleTotals totals_ = TotalsOf(profile_);
  const size_t count_width_ = std::max<size_t>(WithThousands(totals_.samples).size() + 2, 9);
  std::string text_;
};

}  // namespace

std::string EncodeTop(const Profile& profile, const TopOptions& options) {
  return TopText(profile, options).Write();
}

}  // namespace pyrometer
