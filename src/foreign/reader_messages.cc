// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/printable.h"
#include "unwind/registers.h"

namespace pyrometer {
namespace {

constexpr size_t kMostOfText = 400;  // bytes
// ELF files have no more, since the kernel maps none with more program headers.
constexpr size_t kMostSegments = 65536 / 56;
constexpr size_t kMostOfExpression = 128;  // bytes, as the compiler of tables keeps

void Write(const RegisterRule& rule, FlatWriter& out) {
  out.Put(rule.kind);
  out.Put(rule.reg);
  out.Put(rule.offset);
  out.PutAll(std::span<const std::byte>(rule.expression));
}

RegisterRule ReadRegisterRule(FlatReader& in) {
  RegisterRule rule;
  rule.kind = in.Get<RegisterRule::Kind>();
  rule.reg = in.Get<uint8_t>();
  rule.offset = in.Get<int64_t>();
  rule.expression = in.GetAll<std::byte>(kMostOfExpression);
  if (rule.kind > RegisterRule::Kind::kValueExpression) in.Fail();
  return rule;
}

void Write(const ExoticRule& rule, FlatWriter& out) {
  Write(rule.cfa, out);
  out.Put(uint64_t{rule.registers.size()});
  for (const ExoticRule::OfRegister& of : rule.registers) {
    out.Put(of.reg);
    Write(of.rule, out);
  }
  out.Put(rule.return_address);
  out.Put(uint8_t{rule.signal_frame});
}

ExoticRule ReadExoticRule(FlatReader& in) {
  ExoticRule rule;
  rule.cfa = ReadRegisterRule(in);
  const auto registers = in.Get<uint64_t>();
  if (registers > kCfiRegisters) in.Fail();
  for (uint64_t i = 0; i < registers && in.ok(); ++i) {
    const auto reg = in.Get<uint8_t>();
    rule.registers.push_back({.reg = reg, .rule = ReadRegisterRule(in)});
    if (reg >= kCfiRegisters) in.Fail();
  }
  rule.return_address = in.Get<uint8_t>();
  rule.signal_frame = in.Get<uint8_t>() != 0;
  if (rule.return_address >= kCfiRegisters) in.Fail();
  return rule;
}

void Write(const PerfMapLines::Function& function, FlatWriter& out) {
  out.Put(function.start);
  out.Put(function.end);
  out.PutAll(std::as_bytes(std::span(function.name)));
}

PerfMapLines::Function ReadFunction(FlatReader& in) {
  PerfMapLines::Function function;
  function.start = in.Get<uint64_t>();
  function.end = in.Get<uint64_t>();
  const std::span<const std::byte> name = in.View(kMostOfPerfMapName);
  function.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  if (function.start >= function.end || function.name.empty() || !IsPrintable(function.name)) {
    in.Fail();
  }
  return function;
}

void Write(const JitDumpRecords::Record& record, FlatWriter& out) {
  out.Put(record.kind);
  out.Put(record.start);
  out.Put(record.old_start);
  out.Put(record.size);
  out.Put(record.time);
  out.PutAll(std::as_bytes(std::span(record.name)));
  out.Put(uint64_t{record.files.size()});
  for (const std::string_view file : record.files) out.PutAll(std::as_bytes(std::span(file)));
  out.PutAll(record.lines);
}

std::string_view ReadJitName(FlatReader& in) {
  const std::span<const std::byte> bytes = in.View(kMostOfJitName);
  const std::string_view name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!IsPrintable(name)) in.Fail();
  return name;
}

// Whether all that JitDump takes for granted is so.
bool IsSound(const JitDumpRecords::Record& record) {
  if (record.size == 0 || record.size > std::numeric_limits<uint32_t>::max() ||
      record.size > std::numeric_limits<uint64_t>::max() - record.start) {
    return false;
  }
  uint32_t before = 0;
  for (const JitLine& line : record.lines) {
    if (line.offset < std::exchange(before, line.offset) || line.offset > record.size) return false;
    if (line.line != 0 && line.file >= record.files.size()) return false;
  }
  switch (record.kind) {
    case JitDumpRecords::Record::Kind::kLoad:
      return true;
    case JitDumpRecords::Record::Kind::kMove:
      return record.name.empty() && record.lines.empty() && record.files.empty();
  }
  return false;
}

JitDumpRecords::Record ReadJitRecord(FlatReader& in, SentJitRecords& sent) {
  JitDumpRecords::Record record;
  record.kind = in.Get<JitDumpRecords::Record::Kind>();
  record.start = in.Get<uint64_t>();
  record.old_start = in.Get<uint64_t>();
  record.size = in.Get<uint64_t>();
  record.time = in.Get<MonotonicTime>();
  record.name = ReadJitName(in);
  const auto count = in.Get<uint64_t>();
  if (count > kMostJitFiles) in.Fail();
  std::vector<std::string_view>& files = sent.files.emplace_back();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    files.push_back(ReadJitName(in));
    if (files.back().empty()) in.Fail();
  }
  record.files = files;
  record.lines = sent.lines.emplace_back(in.GetAll<JitLine>(kMostJitLines));
  if (!IsSound(record)) in.Fail();
  return record;
}

// Whether all that the kernel side and the unwinder take for granted is so.
bool IsSound(const pyro_unwind_rule& rule, size_t exotic) {
  if (rule.kind >= PYRO_RULE_KINDS || rule.fp > PYRO_SAVED_IN_REGISTER ||
      rule.ra > PYRO_SAVED_IN_REGISTER) {
    return false;
  }
  return rule.kind != PYRO_RULE_EXOTIC ||
         (rule.cfa_offset >= 0 && static_cast<size_t>(rule.cfa_offset) < exotic);
}

bool IsSound(const UnwindTable& table, const SentRows& rows) {
  uint64_t next = 0;
  for (const UnwindTable::Page& page : table.pages) {
    if (page.row_count > UnwindTable::kMostRowsOfPage || page.first_row != next) return false;
    next += page.row_count;
  }
  if (next != rows.count) return false;
  if (rows.count > 0 && rows.largest_rule >= table.rules.size()) return false;
  return std::ranges::all_of(table.rules, [&](const pyro_unwind_rule& rule) {
    return IsSound(rule, table.exotic.size());
  });
}

}  // namespace

Result<void> ReaderChannel::Send(ReaderMessage kind, std::span<const std::byte> bytes,
                                 int attached) const {
  std::vector<std::byte> message(sizeof(kind) + bytes.size());
  std::memcpy(message.data(), &kind, sizeof(kind));
  std::ranges::copy(bytes, message.begin() + sizeof(kind));
  return socket_.SendBytes(message, attached);
}

Result<void> ReaderChannel::SendAll(ReaderMessage kind, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kMostOfOne);
    RETURN_IF_ERROR(Send(kind, bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return {};
}

Result<void> ReaderChannel::SendAndEnd(std::span<const std::byte> value) const {
  const size_t last = std::min(value.size(), kMostOfOne);
  RETURN_IF_ERROR(SendAll(ReaderMessage::kValue, value.first(value.size() - last)));
  return Send(ReaderMessage::kDone, value.last(last));
}

Result<void> ReaderChannel::SendFailure(const Error& error) const {
  FlatWriter out;
  out.Put(error.code());
  const std::string_view text = error.message();
  out.PutAll(std::as_bytes(std::span(text.substr(0, kMostOfText))));
  return Send(ReaderMessage::kFailed, out.bytes());
}

Result<ReaderChannel::Message> ReaderChannel::Receive() {
  buffer_.resize(sizeof(ReaderMessage) + kMostOfOne);
  ASSIGN_OR_RETURN(MessageSocket::Received received, socket_.ReceiveSome(buffer_));
  if (received.size < sizeof(ReaderMessage)) {
    return Fail(ErrorCode::kMalformed, "a message that says nothing");
  }
  Message message;
  std::memcpy(&message.kind, buffer_.data(), sizeof(message.kind));
  message.bytes = std::span(buffer_).first(received.size).subspan(sizeof(message.kind));
  message.attached = std::move(received.attached);
  return message;
}

Error FailureIn(std::span<const std::byte> bytes) {
  FlatReader in(bytes);
  const auto code = in.Get<ErrorCode>();
  const std::vector<char> text = in.GetAll<char>(kMostOfText);
  constexpr std::array kOfFiles = {ErrorCode::kInvalid,   ErrorCode::kUnsupported,
                                   ErrorCode::kMalformed, ErrorCode::kIo,
                                   ErrorCode::kExhausted, ErrorCode::kNotFound};
  if (!in.ended() || std::ranges::find(kOfFiles, code) == kOfFiles.end()) {
    return Fail(ErrorCode::kMalformed, "what reads foreign files has failed");
  }
  return Error(code, Printable({text.data(), text.size()}));
}

void Write(const ObjectFacts& facts, FlatWriter& out) {
  out.PutAll(facts.build_id.bytes());
  out.Put(uint64_t{facts.segments.size()});
  for (const Segment& segment : facts.segments) {
    out.Put(segment.offset.value());
    out.Put(segment.address.value());
    out.Put(segment.file_size);
    out.Put(segment.memory_size);
    out.Put(uint8_t{segment.executable});
  }
}

ObjectFacts ReadFacts(FlatReader& in) {
  ObjectFacts facts;
  facts.build_id = BuildId(in.GetAll<std::byte>(BuildId::kMaxSize));
  const auto segments = in.Get<uint64_t>();
  if (segments > kMostSegments) in.Fail();
  for (uint64_t i = 0; i < segments && in.ok(); ++i) {
    Segment& segment = facts.segments.emplace_back();
    segment.offset = FileOffset(in.Get<uint64_t>());
    segment.address = ElfAddress(in.Get<uint64_t>());
    segment.file_size = in.Get<uint64_t>();
    segment.memory_size = in.Get<uint64_t>();
    segment.executable = in.Get<uint8_t>() != 0;
  }
  return facts;
}

void Write(const DebugLinks& links, FlatWriter& out) {
  out.Put(uint8_t{links.has_debug_info});
  const DebugLink link = links.debug_file.value_or(DebugLink());
  out.PutAll(std::as_bytes(std::span(link.name)));
  out.Put(link.checksum);
  const AlternateLink alternate = links.alternate.value_or(AlternateLink());
  out.PutAll(std::as_bytes(std::span(alternate.name)));
  out.PutAll(alternate.build_id.bytes());
  out.PutAll(links.as_alternate.bytes());
}

// A name that leads elsewhere is none.
DebugLinks ReadLinks(FlatReader& in) {
  DebugLinks links;
  links.has_debug_info = in.Get<uint8_t>() != 0;
  const std::span<const std::byte> name = in.View(DebugLink::kMostName);
  DebugLink link{.name = {reinterpret_cast<const char*>(name.data()), name.size()}};
  link.checksum = in.Get<uint32_t>();
  if (in.ok() && link.is_valid()) links.debug_file = std::move(link);
  const std::span<const std::byte> path = in.View(AlternateLink::kMostName);
  AlternateLink alternate{.name = {reinterpret_cast<const char*>(path.data()), path.size()}};
  alternate.build_id = BuildId(in.GetAll<std::byte>(BuildId::kMaxSize));
  if (in.ok() && alternate.is_valid()) links.alternate = std::move(alternate);
  links.as_alternate = BuildId(in.GetAll<std::byte>(BuildId::kMaxSize));
  return links;
}

void Write(const Reading& reading, FlatWriter& out) {
  out.PutAll(std::span<const uint64_t>(reading.sizes));
  out.Put(uint64_t{reading.pieces.size()});
  for (const Reading::Piece& piece : reading.pieces) {
    out.Put(piece.file);
    out.Put(piece.offset);
    out.Put(piece.size);
  }
  out.Put(reading.digest.low);
  out.Put(reading.digest.high);
  out.Put(uint8_t{reading.is_complete});
}

Reading ReadReading(FlatReader& in) {
  Reading reading;
  reading.sizes = in.GetAll<uint64_t>(Reading::kMostFiles);
  const auto pieces = in.Get<uint64_t>();
  if (pieces > ReadingRecorder::kMostPieces) in.Fail();
  for (uint64_t i = 0; i < pieces && in.ok(); ++i) {
    Reading::Piece& piece = reading.pieces.emplace_back();
    piece.file = in.Get<uint32_t>();
    piece.offset = in.Get<uint64_t>();
    piece.size = in.Get<uint64_t>();
    if (piece.file >= reading.sizes.size()) in.Fail();
  }
  reading.digest.low = in.Get<uint64_t>();
  reading.digest.high = in.Get<uint64_t>();
  reading.is_complete = in.Get<uint8_t>() != 0;
  if (!in.ok()) return {};
  return reading;
}

void Write(const SymbolTable::Layout& layout, FlatWriter& out) {
  out.Put(layout.base);
  out.Put(layout.size);
  out.Put(layout.entries_at);
  out.Put(layout.sources);
  out.Put(layout.texts);
  out.Put(uint8_t{layout.has_names});
  out.Put(layout.unread_debug_info);
}

SymbolTable::Layout ReadLayout(FlatReader& in) {
  SymbolTable::Layout layout;
  layout.base = in.Get<uint64_t>();
  layout.size = in.Get<uint64_t>();
  layout.entries_at = in.Get<uint64_t>();
  layout.sources = in.Get<uint64_t>();
  layout.texts = in.Get<uint64_t>();
  layout.has_names = in.Get<uint8_t>() != 0;
  layout.unread_debug_info = in.Get<uint64_t>();
  return layout;
}

void Write(const UnwindTable& table, FlatWriter& out) {
  out.Put(table.first_page);
  out.PutAll(std::span<const UnwindTable::Page>(table.pages));
  out.PutAll(std::span<const pyro_unwind_rule>(table.rules));
  out.Put(uint64_t{table.exotic.size()});
  for (const ExoticRule& rule : table.exotic) Write(rule, out);
  out.Put(uint8_t{table.sparse});
  out.Put(table.text);
  out.Put(table.covered_text);
  out.Put(table.functions);
  out.Put(table.bad_functions);
  out.Put(table.overlaps);
}

UnwindTable ReadTable(FlatReader& in, const SentRows& rows) {
  UnwindTable table;
  table.first_page = in.Get<uint64_t>();
  table.pages = in.GetAll<UnwindTable::Page>(UnwindTable::kMostPages);
  table.rules = in.GetAll<pyro_unwind_rule>(UnwindTable::kMostRules);
  const auto exotic = in.Get<uint64_t>();
  if (exotic > UnwindTable::kMostRules) in.Fail();
  for (uint64_t i = 0; i < exotic && in.ok(); ++i) table.exotic.push_back(ReadExoticRule(in));
  table.sparse = in.Get<uint8_t>() != 0;
  table.text = in.Get<uint64_t>();
  table.covered_text = in.Get<uint64_t>();
  table.functions = in.Get<uint32_t>();
  table.bad_functions = in.Get<uint32_t>();
  table.overlaps = in.Get<uint32_t>();
  if (!in.ok() || !IsSound(table, rows)) {
    in.Fail();
    return {};
  }
  return table;
}

void Write(const PerfMapPart& part, FlatWriter& out) {
  out.Put(part.begin);
  out.Put(part.end);
  out.Put(uint8_t{part.begins_in_line});
}

PerfMapPart ReadPerfMapPart(FlatReader& in) {
  PerfMapPart part;
  part.begin = in.Get<uint64_t>();
  part.end = in.Get<uint64_t>();
  part.begins_in_line = in.Get<uint8_t>() != 0;
  return part;
}

void Write(const PerfMapLines& lines, FlatWriter& out) {
  out.Put(lines.end);
  out.Put(lines.bad);
  out.Put(uint8_t{lines.ends_in_line});
  out.Put(uint64_t{lines.functions.size()});
  for (const PerfMapLines::Function& function : lines.functions) Write(function, out);
}

PerfMapLines ReadPerfMapLines(FlatReader& in, std::vector<PerfMapLines::Function>& functions) {
  PerfMapLines lines;
  lines.end = in.Get<uint64_t>();
  lines.bad = in.Get<uint64_t>();
  lines.ends_in_line = in.Get<uint8_t>() != 0;
  const auto count = in.Get<uint64_t>();
  functions.clear();
  for (uint64_t i = 0; i < count && in.ok(); ++i) functions.push_back(ReadFunction(in));
  lines.functions = functions;
  return lines;
}

void Write(const std::optional<PerfMapFunction>& function, FlatWriter& out) {
  out.Put(uint8_t{function.has_value()});
  if (function) Write({function->start, function->end, function->name}, out);
}

std::optional<PerfMapFunction> ReadPerfMapFunction(FlatReader& in) {
  if (in.Get<uint8_t>() == 0) return std::nullopt;
  const auto [start, end, name] = ReadFunction(in);
  return PerfMapFunction{.start = start, .end = end, .name = std::string(name)};
}

void Write(const JitDumpPart& part, FlatWriter& out) {
  out.Put(part.begin);
  out.Put(part.end);
  out.Put(part.to_read);
}

JitDumpPart ReadJitDumpPart(FlatReader& in) {
  JitDumpPart part;
  part.begin = in.Get<uint64_t>();
  part.end = in.Get<uint64_t>();
  part.to_read = in.Get<uint64_t>();
  return part;
}

void Write(const JitDumpRecords& records, FlatWriter& out) {
  out.Put(records.bad);
  out.Put(records.lines_left_out);
  out.Put(records.made);
  out.Put(records.read);
  out.Put(records.end);
  out.Put(uint64_t{records.records.size()});
  for (const JitDumpRecords::Record& record : records.records) Write(record, out);
}

JitDumpRecords ReadJitDumpRecords(FlatReader& in, SentJitRecords& sent) {
  JitDumpRecords records;
  records.bad = in.Get<uint64_t>();
  records.lines_left_out = in.Get<uint64_t>();
  records.made = in.Get<uint64_t>();
  records.read = in.Get<uint64_t>();
  records.end = in.Get<uint64_t>();
  const auto count = in.Get<uint64_t>();
  sent = {};
  for (uint64_t i = 0; i < count && in.ok(); ++i) sent.records.push_back(ReadJitRecord(in, sent));
  records.records = sent.records;
  return records;
}

}  // namespace pyrometer
