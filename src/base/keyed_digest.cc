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

namespace {

using State = std::array<uint64_t, 4>;

uint64_t WordAt(const std::byte* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Inlined, so that the state stays in registers from one word to the next.
[[gnu::always_inline]] inline void Round(State& state) {
  auto& [v0, v1, v2, v3] = state;
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

[[gnu::always_inline]] inline void AddWord(uint64_t word, State& state) {
  state[3] ^= word;
  Round(state);
  Round(state);
  state[0] ^= word;
}

}  // namespace

KeyedDigest::KeyedDigest(const Key& key)
    : key_(key),
      state_{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d ^ 0xee,
             key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573} {}

void KeyedDigest::Add(std::span<const std::byte> bytes) {
  // Most that is digested is shorter, and needs no key of a block.
  if (size_ < kBlock && size_ + bytes.size() >= kBlock) block_key_ = BlockKeyOf(key_);
  size_ += bytes.size();
  if (rest_size_ > 0) {
    const size_t taken = std::min(rest_.size() - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < rest_.size()) return;
    AddBlock(rest_);
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) AddBlock(bytes.first<kBlock>());
  std::ranges::copy(bytes, rest_.begin());
  rest_size_ = bytes.size();
}

void KeyedDigest::Add(uint64_t number) {
  Add(std::as_bytes(std::span(&number, 1)));
}

void KeyedDigest::AddBlock(std::span<const std::byte, kBlock> block) {
  __extension__ using Wide = unsigned __int128;
  Wide sum = 0;
  for (size_t i = 0; i < block_key_.size(); i += 2) {
    const std::byte* const words = block.data() + i * sizeof(uint64_t);
    const uint64_t first = WordAt(words) + block_key_[i];
    const uint64_t second = WordAt(words + sizeof(uint64_t)) + block_key_[i + 1];
    sum += Wide{first} * second;
  }
  AddWord(static_cast<uint64_t>(sum), state_);
  AddWord(static_cast<uint64_t>(sum >> 64), state_);
}

// Numbers that follow from the key, which nobody who does not know it can tell from random ones.
KeyedDigest::BlockKey KeyedDigest::BlockKeyOf(const Key& key) {
  BlockKey words;
  for (size_t i = 0; i < words.size(); i += 2) {
    KeyedDigest digest(key);
    digest.Add(uint64_t{i});
    const auto [low, high] = digest.Finish();
    words[i] = low;
    words[i + 1] = high;
  }
  return words;
}

Digest KeyedDigest::Finish() {
  // A few words and their size might be what was made of a block's.
  if (size_ >= kBlock) AddWord(size_, state_);
  size_t done = 0;
  for (; rest_size_ - done >= sizeof(uint64_t); done += sizeof(uint64_t)) {
    AddWord(WordAt(rest_.data() + done), state_);
  }
  uint64_t last = 0;
  std::memcpy(&last, rest_.data() + done, rest_size_ - done);
  AddWord(last | size_ << 56, state_);
  const auto mix = [this](size_t word, uint64_t constant) {
    state_[word] ^= constant;
    for (int i = 0; i < 4; ++i) Round(state_);
    return state_[0] ^ state_[1] ^ state_[2] ^ state_[3];
  };
  const uint64_t low = mix(2, 0xee);
  return {.low = low, .high = mix(1, 0xdd)};
}

}  // namespace pyrometer
