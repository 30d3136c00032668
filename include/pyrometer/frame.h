// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "pyrometer/abi/frame.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// One frame of a stack in its normalized 64-bit form; the layout is abi/frame.h.
class Frame {
 public:
  enum class Kind : uint8_t {
    kUserAddress = PYRO_FRAME_USER_ADDRESS,
    kObject = PYRO_FRAME_OBJECT,
    kKernel = PYRO_FRAME_KERNEL,
  };

  constexpr Frame() = default;
  constexpr explicit Frame(uint64_t bits) : bits_(bits) {}
  static constexpr Frame User(Address a) { return Frame(a.value()); }
  static constexpr Frame Kernel(KernelAddress a) { return Frame(a.value()); }
  // REQUIRES: Fits(offset).
  static constexpr Frame Object(ObjectId object, ElfAddress offset) {
    return Frame(PYRO_OBJECT_FRAME(static_cast<uint64_t>(object.value()), offset.value()));
  }
  // False for the rare object linked at a vaddr beyond 2^40: its frames stay user addresses.
  static constexpr bool Fits(ElfAddress offset) { return offset.value() <= PYRO_FRAME_OFFSET_MASK; }

  constexpr Kind kind() const { return static_cast<Kind>(bits_ >> PYRO_FRAME_KIND_SHIFT); }
  constexpr uint64_t bits() const { return bits_; }

  // REQUIRES: the matching kind.
  constexpr Address user_address() const { return Address(bits_); }
  constexpr KernelAddress kernel_address() const { return KernelAddress(bits_); }
  constexpr ObjectId object() const {
    return ObjectId(
        static_cast<uint32_t>((bits_ >> PYRO_FRAME_OFFSET_BITS) & PYRO_FRAME_OBJECT_MASK));
  }
  constexpr ElfAddress offset() const { return ElfAddress(bits_ & PYRO_FRAME_OFFSET_MASK); }

  constexpr auto operator<=>(const Frame&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Frame& f) {
    return H::combine(std::move(h), f.bits_);
  }

 private:
  uint64_t bits_ = 0;
};

}  // namespace pyrometer
