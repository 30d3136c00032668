// SPDX-License-Identifier: Apache-2.0
#include "foreign/source_trust.h"

#include <algorithm>

#include "base/file_identity.h"

namespace pyrometer {

namespace {

SourceTrust TrustOfOne(int fd) {
  const Result<FileIdentity> identity = IdentityOf(fd);
  const Result<uint32_t> owner = OwnerOf(fd);
  if (!identity || !owner || identity->links == 0) return {};
  return {.owner = *owner};
}

}  // namespace

SourceTrust TrustOf(int fd, std::initializer_list<int> others) {
  const SourceTrust own = TrustOfOne(fd);
  const bool is_same =
      std::ranges::all_of(others, [&](int other) { return other < 0 || TrustOfOne(other) == own; });
  return is_same ? own : SourceTrust();
}

}  // namespace pyrometer
