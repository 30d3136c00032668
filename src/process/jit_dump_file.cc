// SPDX-License-Identifier: Apache-2.0
#include "process/jit_dump_file.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr std::chrono::nanoseconds kOpeningLimit = std::chrono::seconds(1);
constexpr size_t kMostOfPath = 256;  // in messages
constexpr std::string_view kPrefix = "jit-";
constexpr std::string_view kSuffix = ".dump";

}  // namespace

std::optional<Pid> JitDumpFile::ProcessOf(std::string_view path) {
  std::string_view name = WithoutDeleted(path);
  name.remove_prefix(name.find_last_of('/') + 1);
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(name.begin(), name.end(), pid);
  if (error != std::errc() || std::string_view(end, name.end()) != kSuffix) return std::nullopt;
  return Pid(pid);
}

JitDumpFile::JitDumpFile(UniqueFd file, const Inode& inode, std::string_view path,
                         std::shared_ptr<ForeignFiles> files)
    : file_(std::move(file)),
      inode_(inode),
      path_(Printable(path, kMostOfPath)),
      files_(std::move(files)) {}

Result<JitDumpFile> JitDumpFile::Of(UniqueFd file, std::string_view path,
                                    std::shared_ptr<ForeignFiles> files) {
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(file.get()));
  return JitDumpFile(std::move(file), inode, path, std::move(files));
}

Result<UniqueFd> JitDumpFile::Open() const {
  Result<OpenedFile> opened =
      files_->OpenForReading(file_.get(), {.limit = kOpeningLimit, .file_system = inode_.device});
  if (!opened) return std::move(opened).error().With(path_);
  return std::move(opened->fd);
}

}  // namespace pyrometer
