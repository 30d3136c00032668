// SPDX-License-Identifier: Apache-2.0
#include "foreign/reading_budget.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/file_identity.h"
#include "foreign/foreign_files.h"

namespace pyrometer {

Payer PayerOf(int fd) {
  const Result<FileIdentity> file = IdentityOf(fd);
  if (!file) return {};
  const uint32_t owner = OwnerOf(fd).value_or(0);
  return {.user = owner == 0 && file->links == 0 ? Payer::kNameless : owner,
          .device = file->device};
}

uint64_t AccountOf(int fd) {
  const Payer payer = PayerOf(fd);
  return NumberOf(Asked::kPayer, std::array{uint64_t{payer.user}, payer.device});
}

// What is spent still at `now`.
std::chrono::nanoseconds ReadingBudget::Left(const Spent& spent, std::chrono::nanoseconds earns,
                                             MonotonicTime now) {
  const std::chrono::duration<double> time = Between(spent.then, now);
  const auto earned =
      std::chrono::duration_cast<std::chrono::nanoseconds>(earns * std::max(time.count(), 0.0));
  return std::max(spent.cpu - earned, std::chrono::nanoseconds(0));
}

bool ReadingBudget::MayRead(const Payer& payer, What what, MonotonicTime now) const {
  const auto known = spent_.find(payer);
  const std::chrono::nanoseconds own = known == spent_.end()
                                           ? std::chrono::nanoseconds(0)
                                           : Left(known->second, options_.each_earns, now);
  const int times = what == What::kHeaders ? 2 : 1;
  if (own >= times * options_.each) return false;
  if (payer.user == 0) return true;
  const std::chrono::nanoseconds of_users = Left(of_users_, options_.users_earn, now);
  if (of_users >= 2 * options_.users) return false;
  return of_users < options_.users || own < options_.each / kLittle;
}

void ReadingBudget::Charge(const Payer& payer, std::chrono::nanoseconds cpu, MonotonicTime now) {
  if (spent_.size() >= kSweptAt && !spent_.contains(payer)) {
    absl::erase_if(spent_, [&](const auto& spent) {
      return Left(spent.second, options_.each_earns, now).count() == 0;
    });
  }
  Spent& own = spent_[payer];
  own = {.cpu = Left(own, options_.each_earns, now) + cpu, .then = now};
  if (payer.user == 0) return;
  of_users_ = {.cpu = Left(of_users_, options_.users_earn, now) + cpu, .then = now};
}

}  // namespace pyrometer
