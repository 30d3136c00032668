// SPDX-License-Identifier: Apache-2.0
// Strong types for ids, addresses and times. Explicit, ordered, hashable, without arithmetic;
// conversions are named functions of the type that has what they need.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace pyrometer {

template <typename Tag, typename Rep>
class StrongValue {
 public:
  constexpr StrongValue() = default;
  constexpr explicit StrongValue(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongValue&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const StrongValue& v) {
    return H::combine(std::move(h), v.value_);
  }

 private:
  Rep value_{};
};

// Process (thread group) and thread ids, in the initial pid namespace.
using Pid = StrongValue<struct PidTag, uint32_t>;
using Tid = StrongValue<struct TidTag, uint32_t>;

// An address in a running process; in a file; in an ELF's own space (p_vaddr); in the kernel.
using Address = StrongValue<struct AddressTag, uint64_t>;
using FileOffset = StrongValue<struct FileOffsetTag, uint64_t>;
using ElfAddress = StrongValue<struct ElfAddressTag, uint64_t>;
using KernelAddress = StrongValue<struct KernelAddressTag, uint64_t>;

// A file (or the vDSO) that was mapped executable; numbered from 1 without gaps. 0: none.
using ObjectId = StrongValue<struct ObjectIdTag, uint32_t>;

// When the thread group leader started, in clock ticks (10 ms) since boot: field 22 of
// /proc/PID/stat, and start_boottime / 10 ms in the kernel. With the pid it identifies a process
// uniquely: a pid is not reused within one tick.
using StartTime = StrongValue<struct StartTimeTag, uint64_t>;

// Low 32 bits of the kernel's self_exec_id: changes at every exec, inherited at fork.
using ExecId = StrongValue<struct ExecIdTag, uint32_t>;

// CLOCK_MONOTONIC, nanoseconds: what bpf_ktime_get_ns() and our perf events use.
using MonotonicTime = StrongValue<struct MonotonicTimeTag, uint64_t>;

// How often each CPU is sampled.
struct Hertz {
  uint32_t value = 0;
  constexpr std::chrono::nanoseconds Period() const {
    return std::chrono::nanoseconds(1'000'000'000 / value);
  }
  constexpr auto operator<=>(const Hertz&) const = default;
};

// Identity of a process. Never a bare pid.
struct ProcessKey {
  Pid pid;
  StartTime start_time;
  constexpr auto operator<=>(const ProcessKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const ProcessKey& k) {
    return H::combine(std::move(h), k.pid, k.start_time);
  }
};

// Lower-case hex.
inline std::string HexOf(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte b : bytes) {
    hex += kDigits[std::to_integer<unsigned>(b) >> 4];
    hex += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return hex;
}

// A GNU build id: 1 to 20 bytes (SHA-1, MD5, or given by --build-id=0x...). Empty: unknown.
class BuildId {
 public:
  static constexpr size_t kMaxSize = 20;

  constexpr BuildId() = default;
  // Bytes beyond kMaxSize are dropped, as the kernel does in PERF_RECORD_MMAP2.
  explicit BuildId(std::span<const std::byte> bytes) {
    for (; size_ < bytes.size() && size_ < kMaxSize; ++size_) bytes_[size_] = bytes[size_];
  }

  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  bool empty() const { return size_ == 0; }
  // Lower-case hex, as in .build-id directories and pprof; "" if empty.
  std::string ToHex() const { return HexOf(bytes()); }
  auto operator<=>(const BuildId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const BuildId& id) {
    return H::combine(std::move(h), id.bytes_, id.size_);
  }

 private:
  std::array<std::byte, kMaxSize> bytes_{};
  uint8_t size_ = 0;
};

// Tells contents of files apart where there is no build id: half a SHA-256, see HashOf(). Nothing
// is found by it, as debug files are by a build id.
class FileHash {
 public:
  static constexpr size_t kSize = 16;

  constexpr FileHash() = default;
  explicit FileHash(std::span<const std::byte, kSize> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  // Not known. (That a file has this hash will not happen.)
  bool empty() const { return *this == FileHash(); }
  // Lower-case hex; "" if empty.
  std::string ToHex() const { return empty() ? std::string() : HexOf(bytes_); }
  auto operator<=>(const FileHash&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const FileHash& hash) {
    return H::combine(std::move(h), hash.bytes_);
  }

 private:
  std::array<std::byte, kSize> bytes_{};
};

}  // namespace pyrometer
