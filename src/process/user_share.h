// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "process/token_bucket.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// A real user id, in the initial user namespace.
using UserId = StrongValue<struct UserIdTag, uint32_t>;
inline constexpr UserId kUnknownUser{UINT32_MAX};  // as a group of their own: whose user is unknown

// What the history remembers for somebody.
struct Remembered {
  size_t bytes = 0;
  size_t ended = 0;  // processes
};

// What the history remembers for the processes of one user, and what it does for them.
// Thread-compatible, together with all others of the same UserShares.
class UserShare {
 public:
  struct Grave {
    MonotonicTime ended;
    Pid pid;
  };

  UserShare(UserId user, std::shared_ptr<Remembered> all) : user_(user), all_(std::move(all)) {}

  UserId user() const { return user_; }
  const Remembered& own() const { return own_; }
  const Remembered& all() const { return *all_; }  // of every user

  void AddBytes(size_t bytes) {
    own_.bytes += bytes;
    all_->bytes += bytes;
  }
  void RemoveBytes(size_t bytes) {
    own_.bytes -= bytes;
    all_->bytes -= bytes;
  }

  // Ended processes, in the order of their ends.
  const std::deque<Grave>& graves() const { return graves_; }
  void Bury(const Grave& grave);
  Grave Unearth();  // the oldest. REQUIRES: there is one

  // Records of the kernel about these processes, of late.
  uint64_t records = 0;
  bool told = false;  // the log, that they are over their share
  // Limits rechecks of mappings, each of which costs 0.1 to 1 ms, with the others waiting.
  TokenBucket rechecks{500, std::chrono::milliseconds(10)};
  // Limits questions about whose a process really is, each of which costs 60 us. Where hundreds of
  // root's own come and go each second, these few still find the ones that stay.
  TokenBucket questions{200, std::chrono::milliseconds(100)};

 private:
  const UserId user_;
  const std::shared_ptr<Remembered> all_;
  Remembered own_;
  std::deque<Grave> graves_;
};

// Divides what may be remembered among users: each may have as much as all together leave free. So
// one alone has half of it, each of two a third, and who comes later still finds room. (Dynamic
// thresholds: Choudhury and Hahne, 1998, for packets in a shared buffer.) Thread-compatible.
class UserShares {
 public:
  struct Limits {
    // Most processes take 1 to 4 KiB.
    size_t bytes = size_t{128} << 20;
    // A fork bomb must not make us look through all that it left behind for each window.
    size_t ended = 32768;
  };

  explicit UserShares(const Limits& limits) : limits_(limits) {}

  // Made if need be, and kept as long as anybody holds it.
  std::shared_ptr<UserShare> Of(UserId user);

  // True if the user has more ended processes, or bytes of anything, than they may.
  bool IsOver(const UserShare& share) const;
  bool IsOverBytes(const UserShare& share) const;
  // True for a share that is worth a look at whether all of it is really this user's: it is over a
  // sixteenth of all there is, or over half of what this user may have.
  bool IsLarge(const UserShare& share) const;

  // Calls `visit` with each share, and drops those that nobody holds.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (const auto& [user, share] : shares_) visit(*share);
    absl::erase_if(shares_, [](const auto& s) {
      return s.second.use_count() == 1 && s.second->graves().empty();
    });
  }

  size_t size() const { return shares_.size(); }
  const Remembered& all() const { return *all_; }

 private:
  const Limits limits_;
  const std::shared_ptr<Remembered> all_ = std::make_shared<Remembered>();
  absl::flat_hash_map<UserId, std::shared_ptr<UserShare>> shares_;
};

// Allocates for containers whose memory counts as a user's, as long as it is held by anybody.
template <typename T>
class Charged {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  // Null: nobody's.
  explicit Charged(std::shared_ptr<UserShare> share) : share_(std::move(share)) {}
  Charged() = default;
  // One that was moved from must still serve its container: copies only.
  Charged(const Charged& other) = default;
  Charged& operator=(const Charged& other) = default;
  ~Charged() = default;
  template <typename U>
  Charged(const Charged<U>& other) : share_(other.share()) {}  // NOLINT: an allocator converts

  T* allocate(size_t count) {
    T* const memory = std::allocator<T>().allocate(count);
    if (share_ != nullptr) share_->AddBytes(count * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, size_t count) {
    if (share_ != nullptr) share_->RemoveBytes(count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }

  const std::shared_ptr<UserShare>& share() const { return share_; }
  template <typename U>
  bool operator==(const Charged<U>& other) const {
    return share_ == other.share();
  }

 private:
  std::shared_ptr<UserShare> share_;
};

}  // namespace pyrometer
