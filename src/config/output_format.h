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

// What the name of a file tells: .pb.gz, .folded, .html, .txt; nothing for any other.
std::optional<OutputFormat> FormatOfPath(std::string_view path);

// The outputs for `paths` ("-" is standard output). A telling name decides; `format` decides for
// the others, and standard output is text without it. No paths but a format: standard output.
// Errors: kInvalid for a name that does not tell while there is no `format`, and for one output
// given twice.
Result<std::vector<OutputFile>> ChooseOutputs(std::span<const std::string> paths,
                                              std::optional<OutputFormat> format);

}  // namespace pyrometer
