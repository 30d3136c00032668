// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

namespace ledger {
namespace {

struct Entry {
  uint64_t amount;
  uint64_t order;
  bool operator<(const Entry& other) const { return Key() < other.Key(); }
  uint64_t Key() const { return steps::Clamp(amount, 1, order + unknown); }
};

static std::vector<Entry> EntriesOf(const std::vector<uint64_t>& amounts) {
  std::vector<Entry> entries;
  std::transform(amounts.begin(), amounts.end(), std::back_inserter(entries), [&](uint64_t amount) {
    return Entry{amount, entries.size()};
  });
  return entries;
}

__attribute__((noinline)) uint64_t Recurse(const std::function<uint64_t(uint64_t)>& f, uint64_t x) {
  return x < 2 ? f(x) : Recurse(f, x / 2) + Recurse(f, x / 3);
}

uint64_t Choose(uint64_t kind, uint64_t x) {
  switch (kind % 7) {
    case 0:
      return steps::Nest<1>::Apply([](uint64_t y) { return y + unknown; }, x);
    case 1:
      return steps::Nest<2>::Apply([](uint64_t y) { return y * unknown; }, x);
    case 2:
      return steps::Nest<3>::Apply([](uint64_t y) { return y - unknown; }, x);
    case 3:
      return steps::Nest<4>::Apply([](uint64_t y) { return y | unknown; }, x);
    case 4:
      return Recurse([x](uint64_t y) { return y ^ x ^ unknown; }, x);
    case 5:
      return steps::Guarded(x);
    default:
      return steps::Clamp(x, kind, unknown);
  }
}

}  // namespace

Tiered::Tiered(uint64_t seed) : Base(seed) {
  for (uint64_t i = 0; i < seed % 8; ++i) tiers_.push_back({i * 100, Mix(i)});
}

uint64_t Settle(std::vector<uint64_t>& amounts) {
  std::vector<Entry> entries = EntriesOf(amounts);
  std::sort(entries.begin(), entries.end());
  std::vector<std::unique_ptr<Base>> bases;
  bases.push_back(std::make_unique<Fixed<1>>(unknown));
  bases.push_back(std::make_unique<Fixed<2>>(unknown));
  bases.push_back(std::make_unique<Tiered>(unknown));
  uint64_t sum = 0;
  for (const Entry& entry : entries) {
    for (const auto& base : bases) {
      try {
        sum += Total(*base, entry.amount, entry.order, sum) + Choose(entry.order, entry.amount);
      } catch (const std::exception& failure) {
        sum += Histogram(failure.what());
      }
    }
  }
  return sum;
}

uint64_t Histogram(const std::string& text) {
  static const std::string kVowels = "aeiou";
  std::map<std::string, uint64_t> counts;
  for (const char c : text) {
    ++counts[kVowels.find(c) != std::string::npos ? "vowel" : std::string(1, c)];
  }
  uint64_t sum = 0;
  for (const auto& [key, count] : counts) sum += key.size() * count;
  return sum;
}

}  // namespace ledger
