// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "debuginfo/go_table.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// The sink's numbers for a table's strings, each of which is given to it once.
class GoTexts {
 public:
  // `table` and `sink` must outlive this.
  GoTexts(const GoTable& table, SourceSink& sink)
      : table_(table), sink_(sink), bytes_left_(kMostReadings * table.size()) {}

  // kUnknown if there is none.
  SourceSink::Text Name(uint32_t at);
  SourceSink::Text Path(uint32_t unit, int32_t file);

 private:
  // Real tables have each string once. In the oldest format others could have a string begin at
  // each byte of another one.
  static constexpr uint64_t kMostReadings = 2;

  bool CanRead(std::optional<std::string_view> text);

  const GoTable& table_;
  SourceSink& sink_;
  uint64_t bytes_left_;
  absl::flat_hash_map<uint32_t, SourceSink::Text> names_;  // by where they are in the table
  absl::flat_hash_map<uint32_t, SourceSink::Text> paths_;
};

}  // namespace pyrometer
