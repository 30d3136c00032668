// SPDX-License-Identifier: Apache-2.0
#include "indexer/jit_dump_codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"

namespace pyrometer {
namespace {

// With all of its lines and files.
constexpr uint64_t kMostOfCode = JitCode::kMostLines * sizeof(JitCode::Line) +
                                 JitCode::kMostFileBytes + JitCode::kMostFiles * sizeof(uint64_t) +
                                 2 * JitCode::kMaxName;

Error Nonsense() {
  return Fail(ErrorCode::kCrashed, "the process that reads files answers nonsense: a jitdump");
}

void PutText(std::string_view text, FlatWriter& out) {
  out.PutAll(std::as_bytes(std::span(text)));
}

std::string GetText(FlatReader& in) {
  const std::vector<std::byte> bytes = in.GetAll<std::byte>(JitCode::kMaxName);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Printable(text, JitCode::kMaxName);
}

bool IsValid(const JitCode& code) {
  if (code.end <= code.start || code.end - code.start > JitCode::kMostCode) return false;
  if (!std::ranges::is_sorted(code.lines, {}, &JitCode::Line::offset)) return false;
  return std::ranges::all_of(code.lines, [&](const JitCode::Line& line) {
    return line.file < code.files.size() &&
           line.offset <= code.end - code.start + JitCode::kElfHeader;
  });
}

Result<JitCode> Decode(std::span<const std::byte> bytes) {
  FlatReader in(bytes);
  JitCode code;
  code.start = in.Get<uint64_t>();
  code.end = in.Get<uint64_t>();
  code.when = MonotonicTime(in.Get<uint64_t>());
  const bool has_moved = in.Get<uint8_t>() != 0;
  const auto from = in.Get<uint64_t>();
  if (has_moved) code.moved_from = from;
  code.name = GetText(in);
  const auto files = in.Get<uint64_t>();
  if (files > JitCode::kMostFiles) return Nonsense();
  for (uint64_t i = 0; i < files && in.ok(); ++i) code.files.push_back(GetText(in));
  code.lines = in.GetAll<JitCode::Line>(JitCode::kMostLines);
  if (!in.ok() || !in.AtEnd() || !IsValid(code)) return Nonsense();
  return code;
}

}  // namespace

void Encode(const JitDumpPart& part, FlatWriter& out) {
  for (const uint64_t number :
       {part.begin, part.created, part.size, part.most_records, part.most_bytes}) {
    out.Put(number);
  }
  out.Put<uint8_t>(part.has_stopped ? 1 : 0);
}

Result<JitDumpPart> DecodeJitDumpPart(FlatReader& in) {
  JitDumpPart part;
  for (uint64_t* const number :
       {&part.begin, &part.created, &part.size, &part.most_records, &part.most_bytes}) {
    *number = in.Get<uint64_t>();
  }
  part.has_stopped = in.Get<uint8_t>() != 0;
  if (!in.ok()) return Nonsense();
  return part;
}

void Encode(const JitDumpEnd& end, FlatWriter& out) {
  for (const uint64_t number : {end.offset, end.created, end.records, end.bad_records}) {
    out.Put(number);
  }
  out.Put<uint8_t>(end.is_another ? 1 : 0);
  out.Put<uint8_t>(end.is_broken ? 1 : 0);
  out.Put<uint8_t>(end.is_cut ? 1 : 0);
}

Result<JitDumpEnd> DecodeJitDumpEnd(FlatReader& in) {
  JitDumpEnd end;
  for (uint64_t* const number : {&end.offset, &end.created, &end.records, &end.bad_records}) {
    *number = in.Get<uint64_t>();
  }
  end.is_another = in.Get<uint8_t>() != 0;
  end.is_broken = in.Get<uint8_t>() != 0;
  end.is_cut = in.Get<uint8_t>() != 0;
  if (!in.ok()) return Nonsense();
  return end;
}

void Encode(const JitCode& code, FlatWriter& out) {
  FlatWriter body;
  body.Put(code.start);
  body.Put(code.end);
  body.Put(code.when.value());
  body.Put<uint8_t>(code.moved_from ? 1 : 0);
  body.Put(code.moved_from.value_or(0));
  PutText(code.name, body);
  body.Put<uint64_t>(code.files.size());
  for (const std::string& file : code.files) PutText(file, body);
  body.PutAll(std::span(code.lines));
  out.PutAll(body.bytes());
}

Result<void> ForeignJitCode::Put(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  std::span<const std::byte> rest(bytes_);
  uint64_t size = 0;
  while (rest.size() >= sizeof(size)) {
    std::memcpy(&size, rest.data(), sizeof(size));
    if (size > kMostOfCode) return Nonsense();
    if (rest.size() - sizeof(size) < size) break;
    ASSIGN_OR_RETURN(const JitCode code, Decode(rest.subspan(sizeof(size), size)));
    on_code_(code);
    rest = rest.subspan(sizeof(size) + size);
  }
  bytes_.erase(bytes_.begin(), bytes_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  return {};
}

}  // namespace pyrometer
