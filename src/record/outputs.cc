// SPDX-License-Identifier: Apache-2.0
#include "record/outputs.h"

#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "export/fd_sink.h"
#include "export/file_sink.h"
#include "profile/folded.h"
#include "profile/html.h"
#include "profile/pprof.h"
#include "profile/top.h"

namespace pyrometer {
namespace {

// Of text that is read elsewhere: room for where functions are in the source.
constexpr size_t kFileWidth = 132;

std::string HostName() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "";
}

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kFileWidth;
}

EncodedSink::Encoder EncoderOf(OutputFormat format) {
  switch (format) {
    case OutputFormat::kPprof:
      return EncodePprof;
    case OutputFormat::kFolded:
      return EncodeFolded;
    case OutputFormat::kHtml:
      return [](const Profile& profile) { return EncodeHtml(profile, {.host = HostName()}); };
    case OutputFormat::kText:
      break;
  }
  return [](const Profile& profile) { return EncodeTop(profile, {.width = TerminalWidth()}); };
}

Result<std::unique_ptr<ByteSink>> OpenByteSink(const std::string& path) {
  if (path == "-") {
    return std::unique_ptr<ByteSink>(std::make_unique<FdSink>(STDOUT_FILENO, "standard output"));
  }
  ASSIGN_OR_RETURN(FileSink file, FileSink::Open(path));
  return std::unique_ptr<ByteSink>(std::make_unique<FileSink>(std::move(file)));
}

}  // namespace

Result<Outputs> Outputs::Open(const std::vector<OutputFile>& files) {
  Outputs outputs;
  const std::vector<OutputFile> summary = {{.path = "-", .format = OutputFormat::kText}};
  for (const OutputFile& file : files.empty() ? summary : files) {
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> bytes, OpenByteSink(file.path));
    outputs.sinks_.emplace_back(EncoderOf(file.format), std::move(bytes));
  }
  return outputs;
}

Result<void> Outputs::Write(const Profile& profile) {
  std::optional<Error> failure;
  for (EncodedSink& sink : sinks_) {
    Result<void> sent = sink.Send(profile);
    if (!sent && !failure) failure = std::move(sent).error();
  }
  if (failure) return *std::move(failure);
  return {};
}

}  // namespace pyrometer
