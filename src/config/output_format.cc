// SPDX-License-Identifier: Apache-2.0
#include "config/output_format.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace pyrometer {
namespace {

struct FormatName {
  OutputFormat format;
  std::string_view name;
  std::string_view suffix;
};
constexpr std::array<FormatName, 4> kFormats = {{
    {OutputFormat::kPprof, "pprof", ".pb.gz"},
    {OutputFormat::kFolded, "folded", ".folded"},
    {OutputFormat::kHtml, "html", ".html"},
    {OutputFormat::kText, "text", ".txt"},
}};

Result<OutputFormat> FormatFor(std::string_view path, std::optional<OutputFormat> format) {
  if (path == "-") return format.value_or(OutputFormat::kText);
  if (const std::optional<OutputFormat> told = FormatOfPath(path)) return *told;
  if (format) return *format;
  return Fail(ErrorCode::kInvalid,
              "output '{}': the name does not show the format; end it in .pb.gz (pprof), .folded, "
              ".html or .txt, or give --format",
              path);
}

// "x.html" and "./x.html" would overwrite each other; "./-" is a file, unlike "-".
bool IsSame(const std::string& a, const std::string& b) {
  using std::filesystem::path;
  return (a == "-") == (b == "-") && path(a).lexically_normal() == path(b).lexically_normal();
}

}  // namespace

Result<OutputFormat> ParseOutputFormat(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &FormatName::name);
  if (found == kFormats.end()) {
    return Fail(ErrorCode::kInvalid, "unknown format '{}'; choose pprof, folded, html or text",
                name);
  }
  return found->format;
}

std::string_view Name(OutputFormat format) {
  return std::ranges::find(kFormats, format, &FormatName::format)->name;
}

std::optional<OutputFormat> FormatOfPath(std::string_view path) {
  for (const FormatName& known : kFormats) {
    if (path.ends_with(known.suffix)) return known.format;
  }
  return std::nullopt;
}

Result<std::vector<OutputFile>> ChooseOutputs(std::span<const std::string> paths,
                                              std::optional<OutputFormat> format) {
  std::vector<OutputFile> outputs;
  for (const std::string& path : paths) {
    if (path.empty()) return Fail(ErrorCode::kInvalid, "an output name is empty");
    if (path.ends_with('/')) {
      return Fail(ErrorCode::kInvalid, "output '{}' is a directory; name a file in it", path);
    }
    ASSIGN_OR_RETURN(const OutputFormat chosen, FormatFor(path, format));
    const auto is_same = [&](const OutputFile& other) { return IsSame(other.path, path); };
    if (std::ranges::any_of(outputs, is_same)) {
      return Fail(ErrorCode::kInvalid, "output '{}' is given twice", path);
    }
    outputs.push_back({path, chosen});
  }
  if (outputs.empty() && format) outputs.push_back({"-", *format});
  return outputs;
}

}  // namespace pyrometer
