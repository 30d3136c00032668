// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/foreign_files.h"
#include "debuginfod/debuginfod_client.h"
#include "indexer/indexer.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct FileReaderOptions {
  bool sandbox = true;  // files are read in one, or not at all; else in this process
  std::optional<DownloadOptions> debuginfod{};  // nothing: no server is asked for debug files
};

// The processes that open, read and get files of profiled programs for a Profiler.
struct FileReaders {
  std::shared_ptr<ForeignFiles> files;
  std::shared_ptr<Indexer> indexer;
  std::shared_ptr<DebuginfodClient> debuginfod;  // null: no server is asked

  // REQUIRES: this process has one thread. Errors: kUnsupported if there is no sandbox to be had;
  // those of DebuginfodClient, fork(2) and socketpair(2).
  static Result<FileReaders> Start(const FileReaderOptions& options);
};

}  // namespace pyrometer
