// SPDX-License-Identifier: Apache-2.0
// What passes between the indexer and its sandboxed process, as bytes. Decoders believe nothing:
// whatever the bytes are, they return a value that is safe to use, or kCrashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "binary/debug_links.h"
#include "indexer/flat_value.h"
#include "indexer/reading.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/perf_map_lines.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

void Encode(const ObjectFacts& facts, FlatWriter& out);
Result<ObjectFacts> DecodeFacts(FlatReader& in);

void Encode(const DebugLinks& links, FlatWriter& out);
Result<DebugLinks> DecodeLinks(FlatReader& in);

void Encode(const SymbolTableShape& shape, FlatWriter& out);
Result<SymbolTableShape> DecodeShape(FlatReader& in);

void Encode(const Reading& reading, FlatWriter& out);
Result<Reading> DecodeReading(FlatReader& in);

// Without its rows.
void Encode(const UnwindTable& table, FlatWriter& out);

// Rows as they come from the other process, on their way to a sink.
class ForeignRows {
 public:
  explicit ForeignRows(RowSink& sink) : sink_(sink) {}

  // Errors: kCrashed if they are those of no table.
  Result<void> Put(std::span<const std::byte> bytes);

  // The table that all of these rows belong to. Errors: kCrashed if they do not.
  Result<UnwindTable> DecodeTable(FlatReader& in);

 private:
  // The sink gets them so, however few come at a time.
  static constexpr size_t kRowsAtOnce = size_t{64} << 10;

  void PutWaiting();

  RowSink& sink_;
  std::vector<pyro_unwind_row> waiting_;
  std::vector<uint32_t> pages_;  // where one begins with rows: at each pc_low of 0
  uint32_t rows_ = 0;
  uint16_t highest_rule_ = 0;
  uint16_t last_low_ = 0;
};

void Encode(const PerfMapPart& part, FlatWriter& out);
Result<PerfMapPart> DecodePerfMapPart(FlatReader& in);

void Encode(const PerfMapEnd& end, FlatWriter& out);
Result<PerfMapEnd> DecodePerfMapEnd(FlatReader& in);

void Encode(const PerfMapFunction& function, uint64_t offset, FlatWriter& out);
// Of any number of functions.
Result<void> DecodeFunctions(std::span<const std::byte> bytes, OnPerfMapFunction on_function);

void Encode(const Error& error, FlatWriter& out);
Error DecodeError(FlatReader& in);

}  // namespace pyrometer
