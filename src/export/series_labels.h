// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pyrometer/labels.h"

namespace pyrometer {

// What a server takes as labels of a series.
struct LabelRules {
  size_t labels = 30;
  size_t name = 1024;   // bytes
  size_t value = 2048;  // bytes
};

struct SeriesLabels {
  Labels labels;  // sorted; no empty names or values; printable UTF-8 within the rules
  // What was changed, by how: see Packed::altered.
  std::map<std::string, uint64_t> altered;
};

// `labels` as `rules` allow them: names become [a-zA-Z_][a-zA-Z0-9_]*, values printable.
// - A name that begins with "__" is the server's own or was left by relabeling: dropped
//   ("label_reserved", unless only relabeling uses it: "__meta_" and "__tmp" go without a word).
// - A name is sanitised ("label_renamed"); if another label has it already, it gets the first free
//   of "_2", "_3", ... A label whose name needed no change keeps it.
// - In a value what is not printable becomes U+FFFD ("label_cleaned").
// - What is too long is cut ("label_shortened"), a value ending in "...".
// - Of more labels than allowed those last in the order of names are dropped ("label_limit"), but
//   never service_name.
SeriesLabels FitLabels(const Labels& labels, const LabelRules& rules);

// {namespace="default",service_name="nginx"}, of at most `limit` bytes.
std::string SeriesText(const Labels& labels, size_t limit = 4096);

// The value of the label `name`; "" if there is none.
std::string_view ValueOf(const Labels& labels, std::string_view name);

}  // namespace pyrometer
