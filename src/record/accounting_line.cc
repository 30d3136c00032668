// SPDX-License-Identifier: Apache-2.0
#include "record/accounting_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace pyrometer {
namespace {

// The parts of a number: " (a=1 b=2)", or nothing.
class Reasons {
 public:
  void Add(std::string_view reason, uint64_t count) {
    if (count == 0) return;
    text_ += fmt::format("{}{}={}", text_.empty() ? " (" : " ", reason, count);
  }
  std::string Text() const { return text_.empty() ? "" : text_ + ")"; }

 private:
  std::string text_;
};

std::string LostReasons(const Accounting& accounting) {
  Reasons reasons;
  for (size_t i = 0; i < accounting.lost.size(); ++i) {
    reasons.Add(Name(static_cast<Accounting::Lost>(i)), accounting.lost[i]);
  }
  return reasons.Text();
}

// "no unwind information" as one word.
std::string Word(std::string_view name) {
  std::string word(name);
  std::ranges::replace(word, ' ', '_');
  return word;
}

std::string CutReasons(const std::array<uint64_t, kStackEnds>& cut) {
  Reasons reasons;
  for (size_t i = 0; i < cut.size(); ++i) reasons.Add(Word(Name(static_cast<StackEnd>(i))), cut[i]);
  return reasons.Text();
}

}  // namespace

std::string AccountingLine(const Profile& profile) {
  const Accounting& accounting = profile.accounting;
  absl::flat_hash_set<ProcessKey> processes;
  absl::flat_hash_set<std::pair<std::vector<uint32_t>, StackEnd>> stacks;
  std::array<uint64_t, kStackEnds> cut{};
  for (const ProfileSample& sample : profile.samples) {
    processes.insert(sample.process);
    stacks.emplace(sample.stack, sample.end);
    if (IsCut(sample.end)) cut[static_cast<size_t>(sample.end)] += sample.count;
  }
  return fmt::format(
      "samples={} idle={} filtered={} lost={}{} undelivered={} processes={} stacks={} "
      "truncated={}{}",
      accounting.exported, accounting.idle, accounting.filtered, accounting.TotalLost(),
      LostReasons(accounting), accounting.undelivered, processes.size(), stacks.size(),
      std::accumulate(cut.begin(), cut.end(), uint64_t{0}), CutReasons(cut));
}

}  // namespace pyrometer
