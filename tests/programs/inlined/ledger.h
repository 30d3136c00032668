// SPDX-License-Identifier: Apache-2.0
// Templates, constructors and members that call each other, all small enough to be inlined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "steps.h"

namespace ledger {

// What the compiler does not know.
extern volatile uint64_t unknown;

struct Base {
  explicit Base(uint64_t seed) : seed_(Mix(seed)) {}
  virtual ~Base() { unknown = seed_; }
  virtual uint64_t Price(uint64_t amount) const = 0;

 protected:
  static uint64_t Mix(uint64_t x) {
    return steps::Twice([](uint64_t y) { return y * 31 + unknown; }, x);
  }
  uint64_t seed_;
};

template <int kRate>
class Fixed : public Base {
 public:
  explicit Fixed(uint64_t seed) : Base(seed), name_("fixed") {
    name_ += static_cast<char>('a' + kRate);
  }
  uint64_t Price(uint64_t amount) const override { return amount * kRate + name_.size(); }

 private:
  std::string name_;
};

class Tiered : public Base {
 public:
  explicit Tiered(uint64_t seed);
  uint64_t Price(uint64_t amount) const override {
    uint64_t sum = 0;
    for (const Tier& tier : tiers_) sum += tier.Part(amount);
    return sum;
  }

 private:
  struct Tier {
    uint64_t from;
    uint64_t rate;
    uint64_t Part(uint64_t amount) const { return amount > from ? Over(amount) * rate : 0; }
    uint64_t Over(uint64_t amount) const { return steps::Clamp(amount - from, unknown, from); }
  };
  std::vector<Tier> tiers_;
};

template <typename... Amounts>
inline uint64_t Total(const Base& base, Amounts... amounts) {
  return (steps::Guarded(base.Price(amounts)) + ... + 0);
}

uint64_t Settle(std::vector<uint64_t>& amounts);
uint64_t Histogram(const std::string& text);

}  // namespace ledger
