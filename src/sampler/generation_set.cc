// SPDX-License-Identifier: Apache-2.0
#include "sampler/generation_set.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "base/system_error.h"

namespace pyrometer {

GenerationSet::GenerationSet(const bpf_map* map)
    : fd_(bpf_map__fd(map)),
      key_size_(bpf_map__key_size(map)),
      max_entries_(bpf_map__max_entries(map)),
      name_(bpf_map__name(map)) {}

Result<void> GenerationSet::Add(const void* key, uint32_t generation) {
  const auto bit = static_cast<uint8_t>(1U << generation);
  // Again when the fork program has added the key after the look.
  for (int tries = 0; tries < 3; ++tries) {
    uint8_t mask = 0;
    const bool known = bpf_map_lookup_elem(fd_, key, &mask) == 0;
    mask |= bit;
    if (bpf_map_update_elem(fd_, key, &mask, known ? BPF_EXIST : BPF_NOEXIST) == 0) return {};
    if (errno == ENOENT) return {};  // the process has ended just now
    if (errno != EEXIST) break;
  }
  if (errno == E2BIG) {
    return Fail(ErrorCode::kExhausted, "the filter is too large: {} holds {} entries", name_,
                max_entries_);
  }
  return SystemError(errno, fmt::format("adding to {}", name_));
}

bool GenerationSet::Keep(uint8_t generations) const {
  std::vector<std::byte> keys(static_cast<size_t>(max_entries_) * key_size_);
  std::vector<uint8_t> masks(max_entries_);
  // Hash maps give positions of 4 bytes.
  uint32_t position = 0;
  uint32_t count = max_entries_;
  if (bpf_map_lookup_batch(fd_, nullptr, &position, keys.data(), masks.data(), &count, nullptr) !=
          0 &&
      errno != ENOENT) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const std::byte* key = &keys[static_cast<size_t>(i) * key_size_];
    const auto rest = static_cast<uint8_t>(masks[i] & generations);
    if (rest == masks[i]) continue;
    if (rest == 0) {
      bpf_map_delete_elem(fd_, key);
    } else {
      bpf_map_update_elem(fd_, key, &rest, BPF_EXIST);
    }
  }
  return true;
}

}  // namespace pyrometer
