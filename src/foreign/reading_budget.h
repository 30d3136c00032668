// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "foreign/source_trust.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// On whose account a file is read: of the user who owns it, on the device that it lies on, as each
// container has a device for its root. (Who maps a file says less: anybody may map anything.)
struct Payer {
  // Whoever made a nameless file of root's, as our copies are of files that anybody may have made:
  // an ordinary user.
  static constexpr uint32_t kNameless = SourceTrust::kNameless;

  uint32_t user = 0;
  uint64_t device = 0;

  bool operator==(const Payer&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Payer& p) {
    return H::combine(std::move(h), p.user, p.device);
  }
};

// Of an open file. Asks no file system.
Payer PayerOf(int fd);
// The same as a number, among the file systems of QuestionThreads: so readers are shared by those
// who pay.
uint64_t AccountOf(int fd);

// CPU time for reading files: each payer has some in advance, and earns more as time goes by. So
// have all ordinary users together, since one may have many ids and devices: when that is short,
// those go on who have spent little, and when as much again is spent, nobody. Root has devices only
// as somebody gives them to him. Headers, without which nothing is known of a program, are read
// until twice as much is spent. Thread-compatible.
class ReadingBudget {
 public:
  // Of the largest programs each takes 2 s, of others milliseconds.
  struct Options {
    std::chrono::nanoseconds each = std::chrono::seconds(60);
    std::chrono::nanoseconds users = std::chrono::seconds(240);
    // Earned in a second of time.
    std::chrono::nanoseconds each_earns = std::chrono::milliseconds(50);
    std::chrono::nanoseconds users_earn = std::chrono::milliseconds(250);
  };

  explicit ReadingBudget(const Options& options) : options_(options) {}

  enum class What : uint8_t { kHeaders, kAll };

  // Times of one budget do not go back.
  bool MayRead(const Payer& payer, What what, MonotonicTime now) const;
  void Charge(const Payer& payer, std::chrono::nanoseconds cpu, MonotonicTime now);

  size_t size() const { return spent_.size(); }  // payers that are remembered

  // "Little": this part of what each has in advance.
  static constexpr int kLittle = 16;
  // Payers that have earned back what they spent are forgotten once there are so many.
  static constexpr size_t kSweptAt = 1024;

 private:
  struct Spent {
    std::chrono::nanoseconds cpu{};  // and not earned back by then
    MonotonicTime then;
  };

  static std::chrono::nanoseconds Left(const Spent& spent, std::chrono::nanoseconds earns,
                                       MonotonicTime now);

  const Options options_;
  absl::flat_hash_map<Payer, Spent> spent_;
  Spent of_users_;  // but root
};

}  // namespace pyrometer
