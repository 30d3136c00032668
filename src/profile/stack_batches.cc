// SPDX-License-Identifier: Apache-2.0
#include "profile/stack_batches.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace pyrometer {
namespace {

// What messages take beside their strings, in pprof or OTLP, whichever takes more: tags, lengths,
// and indices below 2^21, which no batch of a few megabytes exceeds.
constexpr size_t kBatchBytes = 2048;  // times, types, comments, markers, first rows of tables
constexpr size_t kStackBytes = 36;
constexpr size_t kFrameBytes = 3;
constexpr size_t kLocationBytes = 24;
constexpr size_t kLineBytes = 48;  // with its function
constexpr size_t kMappingBytes = 224;
constexpr size_t kStringBytes = 4;

std::vector<StackCount> MergeStacks(const Profile& profile, size_t depth, uint64_t& cut) {
  using Key = std::pair<absl::Span<const uint32_t>, StackEnd>;
  absl::flat_hash_map<Key, size_t> known;
  std::vector<StackCount> merged;
  for (const ProfileSample& sample : profile.samples) {
    absl::Span<const uint32_t> stack = sample.stack;
    StackEnd end = sample.end;
    if (stack.size() > depth) {
      stack = stack.first(depth);
      end = StackEnd::kTruncated;
      cut += sample.count;
    }
    const auto [at, added] = known.try_emplace(Key(stack, end), merged.size());
    if (added) merged.push_back({.stack = {stack.data(), stack.size()}, .end = end});
    merged[at->second].count += sample.count;
    merged[at->second].value += sample.value;
  }
  return merged;
}

// Adds up what a batch takes while frames are added to it.
class BatchSize {
 public:
  BatchSize(const Profile& profile, const BatchLimits& limits)
      : profile_(profile), limits_(limits), batch_of_(profile.locations.size()) {
    Clear();
  }

  void Clear() {
    ++batch_;
    bytes_ = kBatchBytes;
    strings_.clear();
    objects_.clear();
  }

  // Adds frames, leaf first, as long as they fit; returns how many did. If not all did, nothing
  // more may be added before Clear.
  size_t Add(std::span<const uint32_t> stack) {
    bytes_ += kStackBytes;
    for (size_t i = 0; i < stack.size(); ++i) {
      bytes_ += kFrameBytes;
      if (batch_of_[stack[i]] != batch_) {
        batch_of_[stack[i]] = batch_;
        AddLocation(*profile_.locations[stack[i]]);
      }
      if (bytes_ > limits_.bytes) return i;
    }
    return bytes_ > limits_.bytes ? 0 : stack.size();
  }

  bool fits() const { return bytes_ <= limits_.bytes; }

 private:
  void AddLocation(const Location& location) {
    bytes_ += kLocationBytes;
    if (location.lines.empty()) bytes_ += kLineBytes;
    for (const Line& line : location.lines) {
      bytes_ += kLineBytes;
      AddString(line.function);
      AddString(line.system_name);
      AddString(line.file);
    }
    const CodeObject* object = location.object.get();
    if (!objects_.insert(object).second) return;
    bytes_ += kMappingBytes;
    if (object != nullptr) AddString(object->path);
  }

  void AddString(std::string_view text) {
    if (!strings_.insert(absl::string_view(text.data(), text.size())).second) return;
    constexpr size_t kReplacementBytes = 3;  // of U+FFFD, for any one byte
    const size_t clean = IsPrintable(text) ? text.size() : text.size() * kReplacementBytes;
    bytes_ += kStringBytes + std::min(clean, limits_.name);
  }

  const Profile& profile_;
  const BatchLimits& limits_;
  size_t bytes_ = 0;
  uint32_t batch_ = 0;
  std::vector<uint32_t> batch_of_;  // by location: the last batch it was added to
  absl::flat_hash_set<absl::string_view> strings_;
  absl::flat_hash_set<const CodeObject*> objects_;
};

}  // namespace

StackBatches BatchStacks(const Profile& profile, const BatchLimits& limits) {
  StackBatches result;
  std::vector<StackCount> merged = MergeStacks(profile, limits.depth, result.cut);
  if (limits.bytes == BatchLimits::kNone && merged.size() <= limits.stacks) {
    if (!merged.empty()) result.batches.push_back(std::move(merged));
    return result;
  }
  BatchSize size(profile, limits);
  std::vector<StackCount> batch;
  for (StackCount& stack : merged) {
    size_t fitting = batch.size() < limits.stacks ? size.Add(stack.stack) : 0;
    const bool fits = batch.size() < limits.stacks && size.fits();
    if (!fits && !batch.empty()) {
      result.batches.push_back(std::exchange(batch, {}));
      size.Clear();
      fitting = size.Add(stack.stack);
    }
    if (!size.fits()) {
      // Longer than a whole request. It stays alone: the next stack finds the batch full.
      stack.stack = stack.stack.first(fitting);
      stack.end = StackEnd::kTruncated;
      result.cut += stack.count;
    }
    batch.push_back(stack);
  }
  if (!batch.empty()) result.batches.push_back(std::move(batch));
  return result;
}

}  // namespace pyrometer
