// SPDX-License-Identifier: Apache-2.0
#include "indexer/mapped_content.h"

namespace pyrometer {

Result<bool> HasContent(Indexer& indexer, int fd, const MappedContent& content) {
  ASSIGN_OR_RETURN(const FileIdentity now, IdentityOf(fd));
  const bool is_copy = now.device != content.identity.device || now.inode != content.identity.inode;
  if (is_copy || IsUnchanged(fd, content.identity)) return true;
  if (content.build_id.empty()) return false;
  const Result<ObjectFacts> facts = indexer.Inspect(fd);
  if (facts) return facts->build_id == content.build_id;
  const ErrorCode code = facts.error().code();
  if (code == ErrorCode::kIo || code == ErrorCode::kInternal) return facts.error();
  return false;  // it is no ELF file any more
}

}  // namespace pyrometer
