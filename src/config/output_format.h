// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/record_config.h"
#include "pyrometer/result.h"

namespace pyrometer {

// "pprof", "folded", "html", "text". Errors: kInvalid.
Result<OutputFormat> ParseOutputFormat(std::string_view name);
std::string_view Name(OutputFormat format);

// The format by a file name's ending: .pb.gz, .folded, .html, .txt; nothing for any other.
std::optional<OutputFormat> FormatOfPath(std::string_view path);

// The outputs for `paths` ("-" is standard output). A known ending decides the format; for
// other names `format` does, and standard output is text without it. With a format but no paths,
// the output is standard output. Errors: kInvalid for a name without a known ending if there is no
// `format`, and for an output given twice.
Result<std::vector<OutputFile>> ChooseOutputs(std::span<const std::string> paths,
                                              std::optional<OutputFormat> format);

}  // namespace pyrometer
