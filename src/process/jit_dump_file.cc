// SPDX-License-Identifier: Apache-2.0
#include "process/jit_dump_file.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kMostOfOpening(1);

}  // namespace

bool JitDumpFile::IsCalledLikeOne(std::string_view path) {
  constexpr std::string_view kBefore = "jit-";
  constexpr std::string_view kAfter = ".dump";
  path = WithoutDeleted(path);
  std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return false;
  if (name.size() <= kBefore.size() + kAfter.size()) return false;
  name = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

JitDumpFile::JitDumpFile(UniqueFd file, const Inode& inode, uint64_t number, UserId user,
                         std::shared_ptr<ForeignFiles> files)
    : file_(std::move(file)),
      inode_(inode),
      number_(number),
      user_(user),
      files_(std::move(files)) {}

Result<UniqueFd> JitDumpFile::Open() const {
  const FilePatience patience{.limit = kMostOfOpening, .file_system = inode_.device};
  ASSIGN_OR_RETURN(OpenedFile opened, files_->OpenForReading(file_.get(), patience));
  return std::move(opened.fd);
}

}  // namespace pyrometer
