// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_identity.h"
#include "foreign/indexer.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What a file was when it was mapped.
struct MappedContent {
  FileIdentity identity;
  BuildId build_id;  // may be empty
};

// Whether `fd` has that content still: programs that run are hardly ever overwritten in place, but
// then old samples must get nothing that is of the new content. A copy of the file, which is
// another one, has it. One that was touched has it if its build id is the same. Errors: kIo and
// kInternal of Indexer::Inspect.
Result<bool> HasContent(Indexer& indexer, int fd, const MappedContent& content);

}  // namespace pyrometer
