// SPDX-License-Identifier: Apache-2.0
#include "indexer/artifact_codec.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "binary/byte_source.h"
#include "unwind/registers.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMostSegments = 65535;  // e_phnum
constexpr uint64_t kMostBuildId = 64;
constexpr size_t kMostGoBuildId = 256;
constexpr uint64_t kMostExpression = 4096;
constexpr uint64_t kMostRegisters = 256;  // that a rule can name
constexpr size_t kMostMessage = 400;
constexpr uint8_t kLastRegisterKind = static_cast<uint8_t>(RegisterRule::Kind::kValueExpression);

Error Nonsense(std::string_view what) {
  return Fail(ErrorCode::kCrashed, "the process that reads files answers nonsense: {}", what);
}

void Encode(const RegisterRule& rule, FlatWriter& out) {
  out.Put(static_cast<uint8_t>(rule.kind));
  out.Put(rule.reg);
  out.Put(rule.offset);
  out.PutAll(std::span(rule.expression));
}

RegisterRule DecodeRegisterRule(FlatReader& in, bool& valid) {
  const auto kind = in.Get<uint8_t>();
  valid &= kind <= kLastRegisterKind;
  RegisterRule rule;
  if (valid) rule.kind = static_cast<RegisterRule::Kind>(kind);
  rule.reg = in.Get<uint8_t>();
  rule.offset = in.Get<int64_t>();
  rule.expression = in.GetAll<std::byte>(kMostExpression);
  return rule;
}

void Encode(const ExoticRule& rule, FlatWriter& out) {
  Encode(rule.cfa, out);
  out.Put<uint64_t>(rule.registers.size());
  for (const ExoticRule::OfRegister& of : rule.registers) {
    out.Put(of.reg);
    Encode(of.rule, out);
  }
  out.Put(rule.return_address);
  out.Put<uint8_t>(rule.signal_frame ? 1 : 0);
}

ExoticRule DecodeExoticRule(FlatReader& in, bool& valid) {
  ExoticRule rule{.cfa = DecodeRegisterRule(in, valid), .registers = {}};
  const auto count = in.Get<uint64_t>();
  valid &= count <= kMostRegisters;
  for (uint64_t i = 0; valid && i < count && in.ok(); ++i) {
    const auto reg = in.Get<uint8_t>();
    valid &= reg < kCfiRegisters;
    rule.registers.push_back({.reg = reg, .rule = DecodeRegisterRule(in, valid)});
  }
  rule.return_address = in.Get<uint8_t>();
  valid &= rule.return_address < kCfiRegisters;
  rule.signal_frame = in.Get<uint8_t>() != 0;
  return rule;
}

std::string DecodeText(FlatReader& in, size_t most) {
  const std::vector<std::byte> bytes = in.GetAll<std::byte>(most);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Printable(text, most);
}

std::string DecodeName(FlatReader& in) {
  return DecodeText(in, PerfMapFunction::kMaxName);
}

bool IsValid(const pyro_unwind_rule& rule, const UnwindTable& table) {
  if (rule.kind >= PYRO_RULE_KINDS) return false;
  if (rule.fp > PYRO_SAVED_IN_REGISTER || rule.ra > PYRO_SAVED_IN_REGISTER) return false;
  return rule.kind != PYRO_RULE_EXOTIC ||
         (rule.cfa_offset >= 0 && static_cast<size_t>(rule.cfa_offset) < table.exotic.size());
}

}  // namespace

void Encode(const ObjectFacts& facts, FlatWriter& out) {
  out.PutAll(facts.build_id.bytes());
  out.Put<uint64_t>(facts.segments.size());
  for (const Segment& segment : facts.segments) {
    out.Put(segment.offset.value());
    out.Put(segment.address.value());
    out.Put(segment.file_size);
    out.Put(segment.memory_size);
    out.Put<uint8_t>(segment.executable ? 1 : 0);
  }
  out.PutAll(facts.hash.bytes());
  out.PutAll(std::as_bytes(std::span(facts.go_build_id)));
  out.Put<uint8_t>(facts.tells_names ? 1 : 0);
  out.Put<uint8_t>(facts.may_tell_sources ? 1 : 0);
  out.Put<uint8_t>(facts.named_by_sources ? 1 : 0);
}

Result<ObjectFacts> DecodeFacts(FlatReader& in) {
  ObjectFacts facts;
  facts.build_id = BuildId(in.GetAll<std::byte>(kMostBuildId));
  const auto count = in.Get<uint64_t>();
  if (count > kMostSegments) return Nonsense("segments");
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Segment segment;
    segment.offset = FileOffset(in.Get<uint64_t>());
    segment.address = ElfAddress(in.Get<uint64_t>());
    segment.file_size = in.Get<uint64_t>();
    segment.memory_size = in.Get<uint64_t>();
    segment.executable = in.Get<uint8_t>() != 0;
    const uint64_t size = std::max(segment.file_size, segment.memory_size);
    if (segment.address.value() + size < size || segment.offset.value() + size < size) {
      return Nonsense("segments");  // ElfFile's do not overflow
    }
    facts.segments.push_back(segment);
  }
  const std::vector<std::byte> hash = in.GetAll<std::byte>(FileHash::kSize);
  if (hash.size() != FileHash::kSize) return Nonsense("facts");
  facts.hash = FileHash(std::span(hash).first<FileHash::kSize>());
  facts.go_build_id = DecodeText(in, kMostGoBuildId);
  facts.tells_names = in.Get<uint8_t>() != 0;
  facts.may_tell_sources = in.Get<uint8_t>() != 0;
  facts.named_by_sources = in.Get<uint8_t>() != 0;
  if (!in.ok()) return Nonsense("facts");
  return facts;
}

void Encode(const DebugLinks& links, FlatWriter& out) {
  out.PutAll(std::span(links.name));
  out.Put(links.checksum);
  out.PutAll(std::span(links.supplement));
  out.PutAll(links.supplement_id.bytes());
  out.Put<uint8_t>(links.may_be_split ? 1 : 0);
  out.Put(static_cast<uint32_t>(links.splits.size()));
  for (const std::string& split : links.splits) out.PutAll(std::span(split));
}

// Names of files may have any bytes but NULs, at which a path would end.
Result<DebugLinks> DecodeLinks(FlatReader& in) {
  const Error nonsense = Nonsense("links to debug files");
  bool has_nul = false;
  const auto path = [&in, &has_nul] {
    const std::vector<char> bytes = in.GetAll<char>(PATH_MAX);
    has_nul = has_nul || std::ranges::count(bytes, '\0') > 0;
    return std::string(bytes.begin(), bytes.end());
  };
  DebugLinks links;
  links.name = path();
  links.checksum = in.Get<uint32_t>();
  links.supplement = path();
  links.supplement_id = BuildId(in.GetAll<std::byte>(kMostBuildId));
  links.may_be_split = in.Get<uint8_t>() != 0;
  const auto splits = in.Get<uint32_t>();
  if (!in.ok() || splits > DebugLinks::kMostSplits) return nonsense;
  for (uint32_t i = 0; i < splits; ++i) links.splits.push_back(path());
  if (!in.ok() || has_nul) return nonsense;
  return links;
}

void Encode(const SymbolTableShape& shape, FlatWriter& out) {
  out.Put(shape.base);
  out.Put(shape.size);
  out.Put(shape.entries_at);
  out.Put<uint8_t>(shape.has_names ? 1 : 0);
  out.PutAll(std::span(shape.page_starts));
}

Result<SymbolTableShape> DecodeShape(FlatReader& in) {
  SymbolTableShape shape;
  shape.base = in.Get<uint64_t>();
  shape.size = in.Get<uint64_t>();
  shape.entries_at = in.Get<uint64_t>();
  shape.has_names = in.Get<uint8_t>() != 0;
  shape.page_starts = in.GetAll<uint32_t>(SymbolTable::kMostEntries);
  if (!in.ok()) return Nonsense("symbols");
  return shape;
}

void Encode(const Reading& reading, FlatWriter& out) {
  out.PutAll(std::span(reading.sizes));
  out.Put<uint64_t>(reading.pieces.size());
  for (const Reading::Piece& piece : reading.pieces) {
    out.Put<uint64_t>(piece.file);
    out.Put(piece.offset);
    out.Put(piece.size);
  }
  for (const uint64_t number :
       {reading.key.low, reading.key.high, reading.digest.low, reading.digest.high}) {
    out.Put(number);
  }
  out.Put<uint8_t>(reading.is_complete ? 1 : 0);
}

Result<Reading> DecodeReading(FlatReader& in) {
  constexpr uint64_t kMostFiles = 3 + DebugLinks::kMostSplits;  // see FilesToRead
  constexpr uint64_t kMostOfFile = uint64_t{1} << 40;
  constexpr uint64_t kMostTimesRead = 16;  // programs with much debug information need 3
  Reading reading;
  reading.sizes = in.GetAll<uint64_t>(kMostFiles);
  const auto count = in.Get<uint64_t>();
  if (count > ReadingRecorder::kMostPieces) return Nonsense("a reading");
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto file = in.Get<uint64_t>();
    if (file >= reading.sizes.size()) return Nonsense("a reading");
    const auto offset = in.Get<uint64_t>();
    const auto size = in.Get<uint64_t>();
    if (!Within(offset, size, reading.sizes[file])) return Nonsense("a reading");
    reading.pieces.push_back({.file = static_cast<uint32_t>(file), .offset = offset, .size = size});
  }
  for (uint64_t* const number :
       {&reading.key.low, &reading.key.high, &reading.digest.low, &reading.digest.high}) {
    *number = in.Get<uint64_t>();
  }
  reading.is_complete = in.Get<uint8_t>() != 0;
  if (!in.ok()) return Nonsense("a reading");
  // What others would have to read to compare is no more than was read, but who knows what of that
  // was made up.
  uint64_t size = 0;
  uint64_t read = 0;
  for (const uint64_t of_file : reading.sizes) size += std::min(of_file, kMostOfFile);
  for (const Reading::Piece& piece : reading.pieces) read += std::min(piece.size, kMostOfFile);
  if (read > kMostTimesRead * size) reading.is_complete = false;
  return reading;
}

void Encode(const UnwindTable& table, FlatWriter& out) {
  out.Put(table.first_page);
  out.PutAll(std::span(table.pages));
  out.PutAll(std::span(table.rules));
  out.Put<uint64_t>(table.exotic.size());
  for (const ExoticRule& rule : table.exotic) Encode(rule, out);
  out.Put<uint8_t>(table.sparse ? 1 : 0);
  for (const uint64_t number : {table.text, table.covered_text, table.digest}) out.Put(number);
  for (const uint32_t number : {table.functions, table.bad_functions, table.overlaps}) {
    out.Put(number);
  }
}

Result<void> ForeignRows::Put(std::span<const std::byte> bytes) {
  std::vector<pyro_unwind_row> rows(bytes.size() / sizeof(pyro_unwind_row));
  if (bytes.size() % sizeof(pyro_unwind_row) != 0) return Nonsense("rows");
  if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), bytes.size());
  if (rows.size() > UnwindTable::kMostRows - rows_) return Nonsense("rows");
  for (const pyro_unwind_row& row : rows) {
    if (row.pc_low == 0) {
      if (pages_.size() == UnwindTable::kMostPages) return Nonsense("rows");
      pages_.push_back(rows_);
    } else if (rows_ == 0 || row.pc_low <= last_low_) {
      return Nonsense("rows");
    }
    last_low_ = row.pc_low;
    highest_rule_ = std::max(highest_rule_, row.rule);
    ++rows_;
  }
  waiting_.insert(waiting_.end(), rows.begin(), rows.end());
  if (waiting_.size() >= kRowsAtOnce) PutWaiting();
  return {};
}

void ForeignRows::PutWaiting() {
  if (!waiting_.empty()) sink_.Put(waiting_);
  waiting_.clear();
}

Result<UnwindTable> ForeignRows::DecodeTable(FlatReader& in) {
  PutWaiting();
  UnwindTable table;
  table.first_page = in.Get<uint64_t>();
  table.pages = in.GetAll<UnwindTable::Page>(UnwindTable::kMostPages);
  table.rules = in.GetAll<pyro_unwind_rule>(UnwindTable::kMostRules);
  const auto exotic = in.Get<uint64_t>();
  bool valid = exotic <= UnwindTable::kMostRules;
  for (uint64_t i = 0; valid && i < exotic && in.ok(); ++i) {
    table.exotic.push_back(DecodeExoticRule(in, valid));
  }
  table.sparse = in.Get<uint8_t>() != 0;
  for (uint64_t* const number : {&table.text, &table.covered_text, &table.digest}) {
    *number = in.Get<uint64_t>();
  }
  for (uint32_t* const number : {&table.functions, &table.bad_functions, &table.overlaps}) {
    *number = in.Get<uint32_t>();
  }
  valid &= in.ok();
  valid &= std::ranges::all_of(table.rules, [&](const auto& rule) { return IsValid(rule, table); });
  valid &= table.rules.empty()
               ? rows_ == 0 && table.pages.empty()
               : highest_rule_ < table.rules.size() && table.rules.front().kind == PYRO_RULE_NONE;
  uint32_t next = 0;
  auto with_rows = pages_.begin();
  for (const UnwindTable::Page& page : table.pages) {
    if (!valid) break;
    valid = page.first_row == next && page.row_count <= UnwindTable::kMostRowsOfPage &&
            page.row_count <= rows_ - next;
    if (page.row_count == 0) continue;
    valid = valid && with_rows != pages_.end() && *with_rows++ == next;
    next += page.row_count;
  }
  valid = valid && next == rows_ && with_rows == pages_.end();
  if (!valid) return Nonsense("an unwind table");
  return table;
}

void Encode(const PerfMapPart& part, FlatWriter& out) {
  for (const uint64_t number :
       {part.begin, part.mark, part.size, part.most_lines, part.most_names}) {
    out.Put(number);
  }
  out.Put<uint8_t>(part.has_stopped ? 1 : 0);
}

Result<PerfMapPart> DecodePerfMapPart(FlatReader& in) {
  PerfMapPart part;
  for (uint64_t* const number :
       {&part.begin, &part.mark, &part.size, &part.most_lines, &part.most_names}) {
    *number = in.Get<uint64_t>();
  }
  part.has_stopped = in.Get<uint8_t>() != 0;
  if (!in.ok()) return Nonsense("a part of a perf map");
  return part;
}

void Encode(const PerfMapFunction& function, uint64_t offset, FlatWriter& out) {
  for (const uint64_t number : {function.start, function.end, offset}) out.Put(number);
  out.PutAll(std::as_bytes(std::span(function.name)));
}

Result<void> DecodeFunctions(std::span<const std::byte> bytes, OnPerfMapFunction on_function) {
  FlatReader in(bytes);
  while (!in.AtEnd()) {
    PerfMapFunction function;
    function.start = in.Get<uint64_t>();
    function.end = in.Get<uint64_t>();
    const auto offset = in.Get<uint64_t>();
    function.name = DecodeName(in);
    if (!in.ok() || function.end <= function.start) return Nonsense("a perf map");
    on_function(function, offset);
  }
  return {};
}

void Encode(const PerfMapEnd& end, FlatWriter& out) {
  for (const uint64_t number : {end.offset, end.lines, end.bad_lines, end.mark}) out.Put(number);
  for (const bool flag : {end.is_another, end.is_cut, end.tail.has_value()}) {
    out.Put<uint8_t>(flag ? 1 : 0);
  }
  if (end.tail) Encode(*end.tail, 0, out);
}

Result<PerfMapEnd> DecodePerfMapEnd(FlatReader& in) {
  PerfMapEnd end;
  for (uint64_t* const number : {&end.offset, &end.lines, &end.bad_lines, &end.mark}) {
    *number = in.Get<uint64_t>();
  }
  end.is_another = in.Get<uint8_t>() != 0;
  end.is_cut = in.Get<uint8_t>() != 0;
  if (in.Get<uint8_t>() != 0) {
    PerfMapFunction& tail = end.tail.emplace();
    tail.start = in.Get<uint64_t>();
    tail.end = in.Get<uint64_t>();
    in.Get<uint64_t>();
    tail.name = DecodeName(in);
    if (tail.end <= tail.start) return Nonsense("a perf map");
  }
  if (!in.ok()) return Nonsense("a perf map");
  return end;
}

void Encode(const Error& error, FlatWriter& out) {
  out.Put(static_cast<uint32_t>(error.code()));
  const std::string_view message = error.message();
  out.PutAll(std::as_bytes(std::span(message.substr(0, kMostMessage))));
}

Error DecodeError(FlatReader& in) {
  const auto code = in.Get<uint32_t>();
  const std::vector<std::byte> text = in.GetAll<std::byte>(kMostMessage);
  if (!in.ok()) return Nonsense("an error");
  const std::string_view message(reinterpret_cast<const char*>(text.data()), text.size());
  for (const ErrorCode known :
       {ErrorCode::kInternal, ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kPermission,
        ErrorCode::kUnsupported, ErrorCode::kMalformed, ErrorCode::kIo, ErrorCode::kExhausted}) {
    if (code == static_cast<uint32_t>(known)) return Error(known, Printable(message, kMostMessage));
  }
  return Nonsense("an error");
}

}  // namespace pyrometer
