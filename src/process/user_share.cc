// SPDX-License-Identifier: Apache-2.0
#include "process/user_share.h"

namespace pyrometer {
namespace {

// A share above such a part of what there is counts as large, and even a smaller one where many
// users leave little.
constexpr size_t kLarge = 16;

}  // namespace

void UserShare::Bury(const Grave& grave) {
  graves_.push_back(grave);
  ++own_.ended;
  ++all_->ended;
}

UserShare::Grave UserShare::Unearth() {
  const Grave grave = graves_.front();
  graves_.pop_front();
  --own_.ended;
  --all_->ended;
  return grave;
}

std::shared_ptr<UserShare> UserShares::Of(UserId user) {
  std::shared_ptr<UserShare>& share = shares_[user];
  if (share == nullptr) share = std::make_shared<UserShare>(user, all_);
  return share;
}

bool UserShares::IsOver(const UserShare& share) const {
  return IsOverBytes(share) || share.own().ended + share.all().ended > limits_.ended;
}

bool UserShares::IsOverBytes(const UserShare& share) const {
  return share.own().bytes + share.all().bytes > limits_.bytes;
}

bool UserShares::IsLarge(const UserShare& share) const {
  const auto is_large = [](size_t own, size_t all, size_t limit) {
    return own > limit / kLarge || 2 * own + all > limit;
  };
  return is_large(share.own().bytes, share.all().bytes, limits_.bytes) ||
         is_large(share.own().ended, share.all().ended, limits_.ended);
}

}  // namespace pyrometer
