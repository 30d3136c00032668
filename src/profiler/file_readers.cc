// SPDX-License-Identifier: Apache-2.0
#include "profiler/file_readers.h"

#include <utility>

#include "base/file_process.h"
#include "indexer/in_process_indexer.h"
#include "indexer/sandboxed_indexer.h"

namespace pyrometer {

Result<FileReaders> FileReaders::Start(const FileReaderOptions& options) {
  FileReaders readers;
  ASSIGN_OR_RETURN(readers.files, FileProcess::Start({}));
  if (options.debuginfod) {
    ASSIGN_OR_RETURN(readers.debuginfod,
                     DebuginfodClient::Start({.downloads = *options.debuginfod}));
  }
  if (!options.sandbox) {
    readers.indexer = std::make_shared<InProcessIndexer>();
    return readers;
  }
  Result<std::unique_ptr<SandboxedIndexer>> indexer = SandboxedIndexer::Start({});
  if (!indexer) {
    return Fail(ErrorCode::kUnsupported,
                "no sandbox to read the files of profiled programs in: {}; allow seccomp here, or "
                "have them read without one by --no-sandbox",
                indexer.error().message());
  }
  readers.indexer = *std::move(indexer);
  return readers;
}

}  // namespace pyrometer
