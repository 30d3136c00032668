// SPDX-License-Identifier: Apache-2.0
#include "foreign/source_trust.h"

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

SourceTrust TrustOf(int fd, int debug_file) {
  const SourceTrust own = TrustOfOne(fd);
  return debug_file < 0 || TrustOfOne(debug_file) == own ? own : SourceTrust();
}

}  // namespace pyrometer
