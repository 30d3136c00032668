// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_digest.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace pyrometer {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

KeyedDigest::Key KeyedDigest::RandomKey() {
  Key key;
  // So few bytes come at once, and never fail, on every kernel that we run on.
  while (::getrandom(&key, sizeof(key), 0) != sizeof(key)) {
    if (errno != EINTR) std::abort();
  }
  return key;
}

KeyedDigest::KeyedDigest(const Key& key)
    : state_{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d ^ 0xee,
             key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573} {}

void KeyedDigest::Round() {
  auto& [v0, v1, v2, v3] = state_;
  v0 += v1;
  v2 += v3;
  v1 = std::rotl(v1, 13) ^ v0;
  v3 = std::rotl(v3, 16) ^ v2;
  v0 = std::rotl(v0, 32);
  v2 += v1;
  v0 += v3;
  v1 = std::rotl(v1, 17) ^ v2;
  v3 = std::rotl(v3, 21) ^ v0;
  v2 = std::rotl(v2, 32);
}

void KeyedDigest::AddWord(uint64_t word) {
  state_[3] ^= word;
  Round();
  Round();
  state_[0] ^= word;
}

void KeyedDigest::Add(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  uint64_t word = 0;
  if (rest_size_ > 0) {
    const size_t taken = std::min(rest_.size() - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < rest_.size()) return;
    std::memcpy(&word, rest_.data(), sizeof(word));
    AddWord(word);
    rest_size_ = 0;
  }
  for (; bytes.size() >= sizeof(word); bytes = bytes.subspan(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    AddWord(word);
  }
  std::ranges::copy(bytes, rest_.begin());
  rest_size_ = bytes.size();
}

void KeyedDigest::Add(uint64_t number) {
  Add(std::as_bytes(std::span(&number, 1)));
}

Digest KeyedDigest::Finish() {
  uint64_t last = 0;
  std::memcpy(&last, rest_.data(), rest_size_);
  AddWord(last | size_ << 56);
  const auto mix = [this](size_t word, uint64_t constant) {
    state_[word] ^= constant;
    for (int i = 0; i < 4; ++i) Round();
    return state_[0] ^ state_[1] ^ state_[2] ^ state_[3];
  };
  const uint64_t low = mix(2, 0xee);
  return {.low = low, .high = mix(1, 0xdd)};
}

}  // namespace pyrometer
