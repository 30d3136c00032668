// SPDX-License-Identifier: Apache-2.0
#include "foreign/reading_budget.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file_identity.h"

namespace pyrometer {

Payer PayerOf(int fd) {
  const uint32_t user = OwnerOf(fd).value_or(0);
  if (user != 0) return {.user = user};
  const Result<Inode> inode = InodeOf(fd);
  return {.user = 0, .device = inode ? inode->device : 0};
}

// What is spent still at `now`.
std::chrono::nanoseconds ReadingBudget::Left(const Spent& spent, std::chrono::nanoseconds earns,
                                             MonotonicTime now) {
  const std::chrono::duration<double> time = Between(spent.then, now);
  const auto earned =
      std::chrono::duration_cast<std::chrono::nanoseconds>(earns * std::max(time.count(), 0.0));
  return std::max(spent.cpu - earned, std::chrono::nanoseconds(0));
}

bool ReadingBudget::MayRead(const Payer& payer, MonotonicTime now) {
  const auto known = spent_.find(payer);
  if (known == spent_.end()) return true;
  const std::chrono::nanoseconds own = Left(known->second, options_.each_earns, now);
  const bool is_short = Left(of_all_, options_.all_earn, now) >= options_.all;
  return own < (is_short ? options_.each / kLittle : options_.each);
}

void ReadingBudget::Charge(const Payer& payer, std::chrono::nanoseconds cpu, MonotonicTime now) {
  if (spent_.size() >= kSweptAt && !spent_.contains(payer)) {
    absl::erase_if(spent_, [&](const auto& spent) {
      return Left(spent.second, options_.each_earns, now).count() == 0;
    });
  }
  Spent& own = spent_[payer];
  own = {.cpu = Left(own, options_.each_earns, now) + cpu, .then = now};
  of_all_ = {.cpu = Left(of_all_, options_.all_earn, now) + cpu, .then = now};
}

}  // namespace pyrometer
