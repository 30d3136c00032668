// SPDX-License-Identifier: Apache-2.0
#include "process/perf_record.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace pyrometer {
namespace {

static_assert(kSampleIdFields == (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU));

constexpr uint16_t kKsymbolUnregister = 1;  // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER

// Takes fields off the front of a record. After the first one that is not there, all are zero
// and ok() is false.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  // The rest as a NUL-terminated, padded string.
  std::string TakeString() {
    const std::string_view all(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    rest_ = {};
    const size_t end = all.find('\0');
    if (end == std::string_view::npos) ok_ = false;
    return std::string(all.substr(0, end));
  }

  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// The pid of a task that has none in our pid namespace, or is already dead.
constexpr bool IsNobody(uint32_t pid) {
  return pid == 0 || pid == UINT32_MAX;
}

using MaybeEvent = std::optional<ProcessEvent>;

struct Body {
  std::span<const std::byte> record;  // all of it
  perf_event_header header;
  FieldReader fields;
  MonotonicTime when;
};

MaybeEvent ParseMapping(Body& body) {
  FieldReader& in = body.fields;
  MappingEvent event;
  event.when = body.when;
  event.pid = Pid(in.Take<uint32_t>());
  in.Take<uint32_t>();  // tid
  const uint64_t start = in.Take<uint64_t>();
  const uint64_t length = in.Take<uint64_t>();
  event.range = {Address(start), Address(start + length), FileOffset(in.Take<uint64_t>())};
  if (body.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
    const uint8_t size = in.Take<uint8_t>();
    in.Take<std::array<std::byte, 3>>();  // reserved
    const auto bytes = in.Take<std::array<std::byte, BuildId::kMaxSize>>();
    event.file.build_id = BuildId(std::span(bytes).first(std::min<size_t>(size, bytes.size())));
  } else {
    event.file.major = in.Take<uint32_t>();
    event.file.minor = in.Take<uint32_t>();
    event.file.inode = in.Take<uint64_t>();
    event.file.generation = in.Take<uint64_t>();
  }
  // attr.mmap without mmap_data: always executable.
  event.range.writable = in.Take<uint32_t>() & PROT_WRITE;
  in.Take<uint32_t>();  // flags
  event.file.path = in.TakeString();
  if (IsNobody(event.pid.value()) || event.range.end <= event.range.start) return std::nullopt;
  return event;
}

MaybeEvent ParseTask(Body& body) {
  FieldReader& in = body.fields;
  const Pid pid(in.Take<uint32_t>());
  const Pid parent(in.Take<uint32_t>());
  const Tid tid(in.Take<uint32_t>());
  in.Take<uint32_t>();  // the parent's tid
  const MonotonicTime when(in.Take<uint64_t>());
  if (IsNobody(pid.value()) || IsNobody(tid.value())) return std::nullopt;
  if (body.header.type == PERF_RECORD_EXIT) return ExitEvent{when, pid, tid};
  return ForkEvent{when, pid, tid, parent};
}

MaybeEvent ParseComm(Body& body) {
  CommEvent event;
  event.when = body.when;
  event.pid = Pid(body.fields.Take<uint32_t>());
  event.tid = Tid(body.fields.Take<uint32_t>());
  event.exec = body.header.misc & PERF_RECORD_MISC_COMM_EXEC;
  event.comm = body.fields.TakeString();
  if (IsNobody(event.pid.value())) return std::nullopt;
  return event;
}

// The time in the sample id that begins at `offset`.
MonotonicTime SampleTimeAt(std::span<const std::byte> record, size_t offset) {
  FieldReader in(record.subspan(std::min(offset, record.size())));
  in.Take<uint64_t>();  // pid, tid
  return MonotonicTime(in.Take<uint64_t>());
}

MaybeEvent ParseSymbol(Body& body) {
  SymbolEvent event;
  event.symbol.address = KernelAddress(body.fields.Take<uint64_t>());
  event.symbol.size = body.fields.Take<uint32_t>();
  body.fields.Take<uint16_t>();  // kind: BPF, out of line
  event.symbol.removed = body.fields.Take<uint16_t>() & kKsymbolUnregister;
  event.symbol.name = body.fields.TakeString();
  // With several listeners on a CPU the kernel (seen in 6.18) adds the sample id's size to the
  // record once for each listener before us, and leaves garbage at its end. The sample id itself
  // follows the name, which is padded to eight bytes.
  constexpr size_t kName = sizeof(perf_event_header) + 16;
  event.when = SampleTimeAt(body.record, kName + (event.symbol.name.size() + 8) / 8 * 8);
  return event;
}

MaybeEvent ParseLost(Body& body) {
  body.fields.Take<uint64_t>();  // id
  return LostEvent{body.when, body.fields.Take<uint64_t>()};
}

MaybeEvent ParseBody(Body& body) {
  switch (body.header.type) {
    case PERF_RECORD_MMAP2:
      return ParseMapping(body);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return ParseTask(body);
    case PERF_RECORD_COMM:
      return ParseComm(body);
    case PERF_RECORD_KSYMBOL:
      return ParseSymbol(body);
    case PERF_RECORD_LOST:
      return ParseLost(body);
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::optional<ProcessEvent>> ParsePerfRecord(std::span<const std::byte> record) {
  FieldReader start(record);
  const auto header = start.Take<perf_event_header>();
  if (!start.ok() || header.size != record.size() ||
      record.size() < sizeof(header) + kSampleIdSize) {
    return Fail(ErrorCode::kMalformed, "perf record of {} bytes claims {}", record.size(),
                header.size);
  }
  const MonotonicTime when = SampleTimeAt(record, record.size() - kSampleIdSize);
  const size_t body_size = record.size() - sizeof(header) - kSampleIdSize;
  Body body{record, header, FieldReader(record.subspan(sizeof(header), body_size)), when};
  MaybeEvent event = ParseBody(body);
  if (!body.fields.ok()) {
    return Fail(ErrorCode::kMalformed, "perf record of type {} ends early", header.type);
  }
  return event;
}

}  // namespace pyrometer
