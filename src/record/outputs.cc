// SPDX-License-Identifier: Apache-2.0
#include "record/outputs.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "export/fd_sink.h"
#include "export/file_sink.h"
#include "profile/folded.h"
#include "profile/html.h"
#include "profile/pprof.h"
#include "profile/top.h"

namespace pyrometer {
namespace {

std::string HostName() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "";
}

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return TopOptions{}.width;
}

std::string Encode(OutputFormat format, const Profile& profile, const Accounting& accounting) {
  switch (format) {
    case OutputFormat::kPprof:
      return EncodePprof(profile);
    case OutputFormat::kFolded:
      return EncodeFolded(profile);
    case OutputFormat::kHtml:
      return EncodeHtml(profile, {.host = HostName(), .accounting = accounting});
    case OutputFormat::kText:
      break;
  }
  return EncodeTop(profile, {.width = TerminalWidth()});
}

Result<std::unique_ptr<Sink>> OpenSink(const std::string& path) {
  if (path == "-")
    return std::unique_ptr<Sink>(std::make_unique<FdSink>(STDOUT_FILENO, "standard output"));
  ASSIGN_OR_RETURN(FileSink file, FileSink::Open(path));
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(file)));
}

}  // namespace

Result<Outputs> Outputs::Open(const std::vector<OutputFile>& files) {
  Outputs outputs;
  const std::vector<OutputFile> summary = {{.path = "-", .format = OutputFormat::kText}};
  for (const OutputFile& file : files.empty() ? summary : files) {
    ASSIGN_OR_RETURN(std::unique_ptr<Sink> sink, OpenSink(file.path));
    outputs.targets_.push_back({.format = file.format, .sink = std::move(sink)});
  }
  return outputs;
}

Result<void> Outputs::Write(const Profile& profile, const Accounting& accounting) {
  std::optional<Error> failure;
  for (const Target& target : targets_) {
    Result<void> written = target.sink->Write(Encode(target.format, profile, accounting));
    if (!written && !failure) failure = std::move(written).error();
  }
  if (failure) return *std::move(failure);
  return {};
}

}  // namespace pyrometer
