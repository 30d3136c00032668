// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "pyrometer/abi/sampler.h"

namespace pyrometer {

// The kernel side's journals (bpf/journal.bpf.h), in memory that it shares with us.
class TickJournals {
 public:
  // `frames`: all that the record has.
  using Take =
      std::function<void(const pyro_journal_record& record, std::span<const __u64> frames)>;

  // `memory`: journals of `journal_bytes` each, by CPU and program, one for each half. It
  // must outlive this.
  TickJournals(std::span<std::byte> memory, size_t journal_bytes)
      : memory_(memory), journal_bytes_(journal_bytes) {}

  // Empties the journals of one half, which no program writes to any more.
  void TakeAll(uint32_t half, const Take& take);

 private:
  std::span<std::byte> memory_;
  size_t journal_bytes_;
};

}  // namespace pyrometer
