// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source_record.h"

#include <algorithm>
#include <limits>

namespace pyrometer {
namespace {

constexpr size_t kLeastOfCall = 5;  // bytes
constexpr uint64_t kOtherCall = 2;
constexpr uint64_t kOtherFile = 1;
constexpr uint64_t kMostChange = uint64_t{1} << 33;  // of a line, in zigzag

void Put(std::vector<std::byte>& out, uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<std::byte>(number | 0x80));
  out.push_back(static_cast<std::byte>(number));
}

void Put(std::vector<std::byte>& out, const std::optional<uint32_t>& number) {
  Put(out, number ? uint64_t{*number} + 1 : 0);
}

uint64_t ToZigzag(int64_t number) {
  return (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
}

int64_t FromZigzag(uint64_t number) {
  return static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1);
}

// Takes numbers off bytes that may be anything.
class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // 0 where there is none.
  uint64_t Next() {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(bytes_[at_++]);
      number |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return number;
    }
    ok_ = false;
    return 0;
  }
  uint32_t Next32() {
    const uint64_t number = Next();
    ok_ &= number <= std::numeric_limits<uint32_t>::max();
    return static_cast<uint32_t>(number);
  }
  std::optional<uint32_t> NextOptional() {
    const uint64_t number = Next();
    ok_ &= number <= std::numeric_limits<uint32_t>::max();
    return number == 0 ? std::nullopt : std::optional(static_cast<uint32_t>(number - 1));
  }

  bool ok() const { return ok_; }
  bool ended() const { return at_ == bytes_.size(); }
  size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

std::optional<std::vector<SourceRecord::Call>> ReadCalls(Numbers& numbers, size_t most) {
  const uint64_t count = numbers.Next();
  if (count > most / kLeastOfCall) return std::nullopt;
  std::vector<SourceRecord::Call> calls(count);
  for (SourceRecord::Call& call : calls) {
    if (!numbers.ok()) break;
    call.name = numbers.Next32();
    call.within = numbers.NextOptional();
    call.from.file = numbers.NextOptional();
    call.from.line = numbers.Next32();
    call.start_line = numbers.Next32();
  }
  return numbers.ok() ? std::optional(std::move(calls)) : std::nullopt;
}

// The row that has `offset`.
std::optional<SourceRecord::Row> FindRow(Numbers& numbers, uint64_t offset) {
  SourceRecord::Row row;
  int64_t line = 0;
  uint64_t begin = 0;
  while (!numbers.ended()) {
    const uint64_t head = numbers.Next();
    row.size = head >> 2;
    if ((head & kOtherCall) != 0) row.call = numbers.NextOptional();
    if ((head & kOtherFile) != 0) row.place.file = numbers.NextOptional();
    const uint64_t change = numbers.Next();
    if (!numbers.ok() || change > kMostChange) return std::nullopt;
    line += FromZigzag(change);
    if (line < 0 || line > std::numeric_limits<uint32_t>::max()) return std::nullopt;
    if (offset - begin < row.size) {
      row.place.line = static_cast<uint32_t>(line);
      return row;
    }
    begin += row.size;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> Encode(const SourceRecord& record) {
  std::vector<std::byte> body;
  Put(body, uint64_t{record.start_line});
  Put(body, uint64_t{record.calls.size()});
  for (const SourceRecord::Call& call : record.calls) {
    Put(body, uint64_t{call.name});
    Put(body, call.within);
    Put(body, call.from.file);
    Put(body, uint64_t{call.from.line});
    Put(body, uint64_t{call.start_line});
  }
  SourceRecord::Row last;
  for (const SourceRecord::Row& row : record.rows) {
    const bool other_call = row.call != last.call;
    const bool other_file = row.place.file != last.place.file;
    Put(body, row.size << 2 | (other_call ? kOtherCall : 0) | (other_file ? kOtherFile : 0));
    if (other_call) Put(body, row.call);
    if (other_file) Put(body, row.place.file);
    Put(body, ToZigzag(int64_t{row.place.line} - int64_t{last.place.line}));
    last = row;
  }
  std::vector<std::byte> all;
  all.reserve(body.size() + kHeadOfSourceRecord);
  Put(all, uint64_t{body.size()});
  all.insert(all.end(), body.begin(), body.end());
  return all;
}

std::optional<size_t> SizeOfSourceRecord(std::span<const std::byte> head) {
  Numbers numbers(head.first(std::min(head.size(), kHeadOfSourceRecord)));
  const uint64_t size = numbers.Next();
  if (!numbers.ok() || size > kMostOfSourceRecord) return std::nullopt;
  return numbers.at() + size;
}

std::vector<SourcePlace> PlacesAt(std::span<const std::byte> record, uint64_t offset) {
  const std::optional<size_t> size = SizeOfSourceRecord(record);
  if (!size || *size > record.size()) return {};
  Numbers numbers(record.first(*size));
  numbers.Next();  // the size
  const uint32_t start_line = numbers.Next32();
  const auto calls = ReadCalls(numbers, record.size());
  if (!calls) return {};
  const std::optional<SourceRecord::Row> row = FindRow(numbers, offset);
  if (!row) return {};
  std::vector<SourcePlace> places;
  SourceRecord::Place place = row->place;
  std::optional<uint32_t> inlined = row->call;
  while (inlined && *inlined < calls->size() && places.size() < kMostInlined) {
    const SourceRecord::Call& call = (*calls)[*inlined];
    places.push_back({.name = call.name, .place = place, .start_line = call.start_line});
    place = call.from;
    inlined = call.within;
  }
  places.push_back({.name = {}, .place = place, .start_line = start_line});
  return places;
}

}  // namespace pyrometer
