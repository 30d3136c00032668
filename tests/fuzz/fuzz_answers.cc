// SPDX-License-Identifier: Apache-2.0
// What a process of the sandbox answers, which may be anything: the first byte says to what.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/printable.h"
#include "indexer/artifact_codec.h"
#include "indexer/jit_dump_codec.h"
#include "symbolize/source_map.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace pyrometer;

class Rows : public RowSink {
 public:
  void Put(std::span<const pyro_unwind_row> more) override {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  std::vector<pyro_unwind_row> rows;
};

// The first two bytes: how many rows come before the rest of the table.
void ReadTable(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  const size_t count = std::to_integer<size_t>(bytes[0]) * 256 + std::to_integer<size_t>(bytes[1]);
  bytes = bytes.subspan(2);
  const size_t size = std::min(bytes.size(), count * sizeof(pyro_unwind_row));
  Rows sink;
  ForeignRows rows(sink);
  if (!rows.Put(bytes.first(size))) return;
  FlatReader in(bytes.subspan(size));
  Result<UnwindTable> table = rows.DecodeTable(in);
  if (!table) return;
  table->rows = std::move(sink.rows);
  for (size_t page = 0; page < table->pages.size(); ++page) {
    for (const uint64_t low : {0, 1, 4096, 65535}) {
      const uint64_t begin = (table->first_page + page) << PYRO_UNWIND_PAGE_SHIFT;
      const pyro_unwind_rule* const rule = table->RuleAt(ElfAddress(begin + low));
      if (rule == nullptr || rule->kind != PYRO_RULE_EXOTIC) continue;
      Require(static_cast<size_t>(rule->cfa_offset) < table->exotic.size());
    }
  }
}

void ReadSymbols(std::span<const std::byte> bytes) {
  FlatReader in(bytes);
  Result<SymbolTableShape> shape = DecodeShape(in);
  const auto stored =
      std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{1} << 20});
  if (!shape || !stored->Put(bytes)) return;
  const uint64_t base = shape->base;
  const Result<SymbolTable> table = SymbolTable::From(*std::move(shape), stored);
  for (uint64_t i = 0; table && i < 64; ++i) table->Find(ElfAddress(base + i * 61));
}

void ReadSources(std::span<const std::byte> bytes) {
  const auto stored =
      std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{1} << 20});
  if (!stored->Put(bytes)) return;
  const Result<SourceMap> map = SourceMap::From(stored);
  for (uint64_t i = 0; map && i < 256; ++i) map->Find(ElfAddress(i * 61));
}

// In pieces, whose size the first byte tells.
void ReadJitCode(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const size_t step = std::to_integer<size_t>(bytes[0]) + 1;
  bytes = bytes.subspan(1);
  ForeignJitCode codes([](const JitCode& code) {
    Require(code.end > code.start && IsPrintable(code.name));
    for (const std::string& file : code.files) Require(IsPrintable(file));
    for (const JitCode::Line& line : code.lines) {
      Require(line.file < code.files.size());
      Require(line.offset <= code.end - code.start + JitCode::kElfHeader);
    }
  });
  while (!bytes.empty() && codes.Put(bytes.first(std::min(step, bytes.size())))) {
    bytes = bytes.subspan(std::min(step, bytes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  FlatReader in(bytes);
  switch (data[0] % 9) {
    case 0:
      return DecodeFacts(in).has_value() ? 0 : 0;
    case 1:
      ReadTable(bytes);
      return 0;
    case 2:
      ReadSymbols(bytes);
      return 0;
    case 3:
      ReadSources(bytes);
      return 0;
    case 4:
      if (const auto reading = DecodeReading(in)) {
        for (const Reading::Piece& piece : reading->pieces) {
          Require(piece.file < reading->sizes.size());
        }
      }
      return 0;
    case 5:
      if (const auto links = DecodeLinks(in)) {
        Require(links->name.find('\0') == std::string::npos);
        Require(links->supplement.find('\0') == std::string::npos);
        Require(links->splits.size() <= DebugLinks::kMostSplits);
        for (const std::string& split : links->splits) {
          Require(split.find('\0') == std::string::npos);
        }
      }
      return 0;
    case 6: {
      const Error error = DecodeError(in);
      Require(IsPrintable(error.message()));
      return 0;
    }
    case 7:
      ReadJitCode(bytes);
      return DecodeJitDumpEnd(in).has_value() ? 0 : 0;
    default:
      DecodeFunctions(bytes, [](const PerfMapFunction& function, uint64_t) {
        Require(function.end > function.start && IsPrintable(function.name));
      }).has_value();
      return DecodePerfMapEnd(in).has_value() ? 0 : 0;
  }
}
