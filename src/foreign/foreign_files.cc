// SPDX-License-Identifier: Apache-2.0
#include "foreign/foreign_files.h"

#include "base/keyed_digest.h"

namespace pyrometer {

uint64_t NumberOf(Asked what, std::span<const uint64_t> which, std::string_view path) {
  static const KeyedDigest::Key kKey = KeyedDigest::RandomKey();
  constexpr uint64_t kNoDevice = uint64_t{1} << 63;
  KeyedDigest digest(kKey);
  digest.Add(static_cast<uint64_t>(what));
  for (const uint64_t number : which) digest.Add(number);
  digest.Add(std::as_bytes(std::span(path)));
  return digest.Finish().low | kNoDevice;
}

}  // namespace pyrometer
