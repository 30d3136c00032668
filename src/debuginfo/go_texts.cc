// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_texts.h"

#include <algorithm>
#include <string>

namespace pyrometer {
namespace {

// Type arguments are shown as dots, as by runtime.funcNameForPrint.
std::string WithoutTypeArguments(std::string_view name, size_t first, size_t last) {
  std::string shown(name.substr(0, first));
  shown += "[...]";
  shown += name.substr(last + 1);
  return shown;
}

SourceSink::Text AddName(SourceSink& sink, std::string_view name) {
  const size_t first = name.find('[');
  const size_t last = name.rfind(']');
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) {
    return sink.AddName(name);
  }
  return sink.AddName(WithoutTypeArguments(name, first, last));
}

}  // namespace

bool GoTexts::CanRead(std::optional<std::string_view> text) {
  const uint64_t cost = text ? text->size() : GoTable::kMaxString;
  const bool is_affordable = cost <= bytes_left_;
  bytes_left_ -= std::min(cost, bytes_left_);
  return text && is_affordable;
}

SourceSink::Text GoTexts::Name(uint32_t at) {
  const auto [entry, is_new] = names_.try_emplace(at, SourceSink::kUnknown);
  if (!is_new || bytes_left_ == 0) return entry->second;
  const std::optional<std::string_view> name = table_.Name(at);
  // Before Go 1.18 there were no type arguments, and brackets are those of arrays.
  const bool has_arguments = table_.header().format >= GoHeader::Format::kGo118;
  if (CanRead(name)) entry->second = has_arguments ? AddName(sink_, *name) : sink_.AddName(*name);
  return entry->second;
}

SourceSink::Text GoTexts::Path(uint32_t unit, int32_t file) {
  const std::optional<uint32_t> at = table_.PathAt(unit, file);
  if (!at) return SourceSink::kUnknown;
  const auto [entry, is_new] = paths_.try_emplace(*at, SourceSink::kUnknown);
  if (!is_new || bytes_left_ == 0) return entry->second;
  const std::optional<std::string_view> path = table_.Path(*at);
  if (CanRead(path)) entry->second = sink_.AddPath("", *path);
  return entry->second;
}

}  // namespace pyrometer
