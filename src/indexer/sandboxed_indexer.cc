// SPDX-License-Identifier: Apache-2.0
#include "indexer/sandboxed_indexer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/idle_cpu.h"
#include "indexer/answer_sinks.h"
#include "indexer/artifact_codec.h"
#include "indexer/jit_dump_codec.h"

namespace pyrometer {
namespace {

// To enter the sandbox; 1 ms as a rule.
constexpr std::chrono::seconds kStarting(5);
// How soon a stop is noticed.
constexpr std::chrono::milliseconds kStopStep(20);
// More is no answer: 16 million rows, the names and functions of the largest table.
constexpr uint64_t kMostOfRest = uint64_t{1} << 30;
constexpr size_t kMostCulprits = 1024;
constexpr uint64_t kMostOfGrowing = uint64_t{128} << 20;  // bytes of a file; see Question

Error Ended() {
  return Fail(ErrorCode::kCrashed, "the process that reads files has ended");
}

Error AnswersNonsense() {
  return Fail(ErrorCode::kCrashed, "the process that reads files answers nonsense");
}

}  // namespace

struct SandboxedIndexer::Question {
  using OnRest = std::function<Result<void>(std::span<const std::byte>)>;
  // Takes the value of the answer apart. Errors: kCrashed if it makes no sense.
  using OnValue = std::function<Result<void>(FlatReader&)>;

  IndexRequest request{};
  FilesToRead files{};
  struct Other {
    int fd = -1;
    uint64_t size = 0;
  };
  std::vector<Other> others{};  // of the files, all but the first
  std::span<const std::byte> value{};
  OnRest on_rest{};  // null: there must be none
  OnValue on_value{};
  std::stop_token stop{};
  bool is_alone = false;  // to be answered by a process that has read no other file
  // A part of a file that a process may be writing to: it is the same file when more has come, and
  // no longer takes more time.
  bool is_of_growing_file = false;
};

// With one process, which goes on to serve others if it has answered everything.
class SandboxedIndexer::Conversation {
 public:
  Conversation(SandboxedIndexer& owner, Reader child, std::chrono::nanoseconds limit)
      : owner_(owner), child_(std::move(child)), until_(After(MonotonicNow(), limit)) {}
  ~Conversation() {
    if (is_over_) return;
    if (is_whole_) {
      owner_.Return(std::move(child_));
    } else {
      owner_.GiveUp(child_, fate_);
    }
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // REQUIRES: it has answered everything.
  Reader Release() && {
    is_over_ = true;
    return std::move(child_);
  }
  // It is not to be asked again.
  void Abandon() { is_whole_ = false; }

  Result<void> Send(const Question& question) {
    const MessageSocket& socket = child_.socket;
    if (!socket.Send(question.request, question.files.own)) return Ended();
    for (const auto& [fd, size] : question.others) {
      if (!socket.Send(size, fd)) return Ended();
    }
    for (auto rest = question.value; !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), kMostOfMessage));
      if (!socket.SendBytes(part, -1)) return Ended();
      rest = rest.subspan(part.size());
    }
    return {};
  }

  Result<void> Receive(const Question& question) {
    std::vector<std::byte> value;
    uint64_t of_rest = 0;
    while (true) {
      ASSIGN_OR_RETURN(const auto message, Next(question.stop));
      const auto& [kind, bytes] = message;
      switch (kind) {
        case IndexReply::kRest:
          of_rest += bytes.size();
          if (question.on_rest == nullptr || of_rest > kMostOfRest) return AnswersNonsense();
          RETURN_IF_ERROR(question.on_rest(bytes));
          continue;
        case IndexReply::kValue:
          if (value.size() + bytes.size() > kMostOfValue) return AnswersNonsense();
          value.insert(value.end(), bytes.begin(), bytes.end());
          continue;
        case IndexReply::kDone: {
          FlatReader in(value);
          const Result<void> taken = question.on_value(in);
          is_whole_ = taken.has_value() && in.AtEnd();
          return is_whole_ || !taken ? taken : AnswersNonsense();
        }
        case IndexReply::kFailed: {
          FlatReader in(bytes);
          Error error = DecodeError(in);
          is_whole_ = error.code() != ErrorCode::kCrashed;
          return error;
        }
      }
      return AnswersNonsense();
    }
  }

 private:
  struct Message {
    IndexReply kind = IndexReply::kFailed;
    std::span<const std::byte> bytes;
  };

  Result<Message> Next(const std::stop_token& stop) {
    RETURN_IF_ERROR(Await(stop));
    const Result<size_t> size = child_.socket.ReceiveSome(buffer_);
    uint32_t kind = 0;
    if (!size) return Ended();
    if (*size < sizeof(kind)) return AnswersNonsense();
    std::memcpy(&kind, buffer_.data(), sizeof(kind));
    if (kind > static_cast<uint32_t>(IndexReply::kFailed)) return AnswersNonsense();
    return Message{.kind = static_cast<IndexReply>(kind),
                   .bytes = std::span(buffer_).first(*size).subspan(sizeof(kind))};
  }

  Result<void> Await(const std::stop_token& stop) {
    // Even if there are messages: they may never end.
    while (true) {
      if (stop.stop_requested()) {
        fate_ = Fate::kLate;
        return Fail(ErrorCode::kExhausted, "nothing is made any more");
      }
      const auto left = Between(MonotonicNow(), until_);
      if (left.count() <= 0) {
        fate_ = Fate::kLate;
        return Fail(ErrorCode::kCrashed, "reading the file takes too long");
      }
      const std::chrono::nanoseconds step = stop.stop_possible() ? kStopStep : left;
      if (child_.socket.WaitUntilReadable(std::min(left, step))) return {};
    }
  }

  SandboxedIndexer& owner_;
  Reader child_;
  const MonotonicTime until_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMostOfMessage);
  bool is_whole_ = false;
  bool is_over_ = false;
  Fate fate_ = Fate::kEnded;
};

Result<std::unique_ptr<SandboxedIndexer>> SandboxedIndexer::Start(Options options) {
  Nursery::Work work = options.work;
  if (work == nullptr) {
    work = [limits = options.limits](MessageSocket socket) {
      ServeIndexing(std::move(socket), limits);
    };
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Nursery> nursery, Nursery::Start("pyrometer-index", work));
  std::unique_ptr<SandboxedIndexer> indexer(
      new SandboxedIndexer(std::move(options), std::move(nursery)));
  ASSIGN_OR_RETURN(Reader first, indexer->Fork());
  indexer->Return(std::move(first));
  return indexer;
}

Result<ObjectFacts> SandboxedIndexer::Inspect(int fd) {
  ObjectFacts facts;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kInspect},
                       .files = {.own = fd},
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         ASSIGN_OR_RETURN(facts, DecodeFacts(in));
                         return {};
                       }}));
  return facts;
}

Result<DebugLinks> SandboxedIndexer::Links(int fd) {
  DebugLinks links;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kLinks},
                       .files = {.own = fd},
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         ASSIGN_OR_RETURN(links, DecodeLinks(in));
                         return {};
                       }}));
  return links;
}

Result<uint32_t> SandboxedIndexer::Checksum(int fd) {
  uint32_t checksum = 0;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kChecksum},
                       .files = {.own = fd},
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         checksum = in.Get<uint32_t>();
                         return in.ok() ? Result<void>() : AnswersNonsense();
                       }}));
  return checksum;
}

Result<Made<SymbolTable>> SandboxedIndexer::Symbols(const FilesToRead& files,
                                                    const SymbolTableOptions& options) {
  std::shared_ptr<SpilledBytes> bytes = RoomFor(options);
  LargePieces rest(*bytes);
  Made<SymbolTable> made;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kSymbols},
                       .files = files,
                       .on_rest = [&](auto more) { return rest.Put(more); },
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         rest.Flush();
                         ASSIGN_OR_RETURN(SymbolTableShape shape, DecodeShape(in));
                         ASSIGN_OR_RETURN(made.reading, DecodeReading(in));
                         if (!rest.has_room()) return {};
                         ASSIGN_OR_RETURN(made.value, SymbolTable::From(std::move(shape), bytes));
                         return {};
                       }}));
  if (!rest.has_room()) return Fail(ErrorCode::kExhausted, "no room for the names of functions");
  return made;
}

// What comes of it may be kept for longer than any process of the sandbox lives, or this one.
Result<Made<SourceMap>> SandboxedIndexer::Sources(const FilesToRead& files,
                                                  const SymbolTableOptions& options) {
  std::shared_ptr<SpilledBytes> bytes = RoomFor(options);
  LargePieces rest(*bytes);
  Made<SourceMap> made;
  // It has time: where all CPUs are busy, those are not slowed down for it twice as much.
  const uint32_t may_use_two_threads = HasIdleCpu() ? 1 : 0;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kSources,
                                   .may_use_two_threads = may_use_two_threads},
                       .files = files,
                       .on_rest = [&](auto more) { return rest.Put(more); },
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         rest.Flush();
                         ASSIGN_OR_RETURN(made.reading, DecodeReading(in));
                         if (!rest.has_room()) return {};
                         ASSIGN_OR_RETURN(made.value, SourceMap::From(bytes));
                         return {};
                       },
                       .is_alone = true}));
  if (!rest.has_room()) return Fail(ErrorCode::kExhausted, "no room for source lines");
  return made;
}

Result<Made<UnwindTable>> SandboxedIndexer::Unwind(const FilesToRead& files,
                                                   const UnwindTableOptions& options) {
  RowsInMemory own_rows;
  ForeignRows rows(options.rows == nullptr ? own_rows : *options.rows);
  Made<UnwindTable> made;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kUnwind},
                       .files = files,
                       .on_rest = [&](auto more) { return rows.Put(more); },
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         ASSIGN_OR_RETURN(made.value, rows.DecodeTable(in));
                         ASSIGN_OR_RETURN(made.reading, DecodeReading(in));
                         return {};
                       },
                       .stop = options.stop}));
  made.value.rows = std::move(own_rows.rows);
  return made;
}

Result<bool> SandboxedIndexer::Repeats(const FilesToRead& files, const Reading& reading) {
  FlatWriter known;
  Encode(reading, known);
  bool repeats = false;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kRepeats},
                       .files = files,
                       .value = known.bytes(),
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         repeats = in.Get<uint8_t>() == 1;
                         return in.ok() ? Result<void>() : AnswersNonsense();
                       }}));
  return repeats;
}

Result<std::vector<std::byte>> SandboxedIndexer::Bytes(int fd, FileOffset offset, size_t size) {
  const size_t most = std::min(size, kMostBytes);
  std::vector<std::byte> bytes;
  RETURN_IF_ERROR(
      Ask({.request = {.what = IndexRequest::What::kBytes, .offset = offset.value(), .count = most},
           .files = {.own = fd},
           .on_value = [&](FlatReader& in) -> Result<void> {
             bytes = in.GetAll<std::byte>(most);
             return in.ok() ? Result<void>() : AnswersNonsense();
           }}));
  return bytes;
}

Result<PerfMapEnd> SandboxedIndexer::PerfMapLines(int fd, const PerfMapPart& part,
                                                  OnPerfMapFunction on_function) {
  FlatWriter place;
  Encode(part, place);
  PerfMapEnd end;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kPerfMap},
                       .files = {.own = fd},
                       .value = place.bytes(),
                       .on_rest = [&](auto more) { return DecodeFunctions(more, on_function); },
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         ASSIGN_OR_RETURN(end, DecodePerfMapEnd(in));
                         return {};
                       },
                       .is_of_growing_file = true}));
  return end;
}

Result<JitDumpEnd> SandboxedIndexer::JitDumpRecords(int fd, const JitDumpPart& part,
                                                    OnJitCode on_code) {
  FlatWriter place;
  Encode(part, place);
  ForeignJitCode codes(on_code);
  JitDumpEnd end;
  RETURN_IF_ERROR(Ask({.request = {.what = IndexRequest::What::kJitDump},
                       .files = {.own = fd},
                       .value = place.bytes(),
                       .on_rest = [&](auto more) { return codes.Put(more); },
                       .on_value = [&](FlatReader& in) -> Result<void> {
                         ASSIGN_OR_RETURN(end, DecodeJitDumpEnd(in));
                         return codes.AtEnd() ? Result<void>() : AnswersNonsense();
                       },
                       .is_of_growing_file = true}));
  return end;
}

Result<void> SandboxedIndexer::Ask(const Question& question) {
  Question full = question;
  // Reading anything but a regular file, which this makes sure of, may block or have effects.
  ASSIGN_OR_RETURN(const FileIdentity own, IdentityOf(question.files.own));
  full.request.size = own.size;
  full.request.has_debug_file = question.files.debug >= 0 ? 1 : 0;
  full.request.has_supplement = question.files.supplement >= 0 ? 1 : 0;
  full.request.splits = static_cast<uint32_t>(question.files.splits.size());
  std::vector<int> others{question.files.debug, question.files.supplement};
  others.insert(others.end(), question.files.splits.begin(), question.files.splits.end());
  for (const int fd : others) {
    if (fd < 0) continue;
    ASSIGN_OR_RETURN(const FileIdentity other, IdentityOf(fd));
    full.others.push_back({.fd = fd, .size = other.size});
  }
  full.request.value_size = question.value.size();
  full.request.key = key_;
  Culprit culprit{.file = own, .what = question.request.what};
  if (question.is_of_growing_file) {
    culprit.file = {.device = own.device, .inode = own.inode};
    // Inode numbers come back.
    ASSIGN_OR_RETURN(culprit.user, OwnerOf(question.files.own));
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto known = culprits_.find(culprit);
    if (known != culprits_.end() && MonotonicNow() < known->second) {
      return Fail(ErrorCode::kCrashed, "the file ended a process that read it before");
    }
  }
  Result<void> answer = Converse(full);
  if (!answer && answer.error().code() == ErrorCode::kCrashed) {
    const std::scoped_lock lock(mutex_);
    if (culprits_.size() == kMostCulprits) culprits_.clear();
    culprits_[culprit] = After(MonotonicNow(), options_.quarantine);
  }
  return answer;
}

Result<void> SandboxedIndexer::Converse(const Question& question) {
  ASSIGN_OR_RETURN(Reader child, question.is_alone ? ForkAnother() : Take());
  uint64_t size = question.request.size;
  for (const Question::Other& other : question.others) size += other.size;
  if (question.is_of_growing_file) size = std::min(size, kMostOfGrowing);
  Conversation conversation(*this, std::move(child), options_.time(size));
  // Before it has the question, no file can be what ended it.
  if (!conversation.Send(question)) return Fail(ErrorCode::kIo, "{}", Ended().message());
  return conversation.Receive(question);
}

Result<SandboxedIndexer::Reader> SandboxedIndexer::Take() {
  while (std::optional<Reader> child = TakeIdle()) {
    // It has nothing to say by now, unless it was killed or has lost its mind.
    if (!child->socket.WaitUntilReadable(std::chrono::nanoseconds(0))) return *std::move(child);
    GiveUp(*child, Fate::kEnded);
  }
  return ForkAnother();
}

std::optional<SandboxedIndexer::Reader> SandboxedIndexer::TakeIdle() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return std::nullopt;
  Reader child = std::move(idle_.back());
  idle_.pop_back();
  return child;
}

Result<SandboxedIndexer::Reader> SandboxedIndexer::ForkAnother() {
  {
    const std::scoped_lock lock(mutex_);
    if (counters_.running >= options_.max_processes) {
      return Fail(ErrorCode::kIo, "too many files are being read");
    }
  }
  return Fork();
}

Result<SandboxedIndexer::Reader> SandboxedIndexer::Fork() {
  Result<Nursery::Child> forked = nursery_->Fork();
  // Not kExhausted, by which a file system would be taken for slow.
  if (!forked) return Fail(ErrorCode::kIo, "{}", forked.error().message());
  Reader child{.socket = std::move(forked->socket), .pid = forked->pid};
  if (!child.socket.LimitSending(kStarting)) {
    nursery_->Kill(child.pid);
    return Fail(ErrorCode::kIo, "a socket to another process");
  }
  {
    const std::scoped_lock lock(mutex_);
    ++counters_.started;
    ++counters_.running;
  }
  Conversation greeting(*this, std::move(child), kStarting);
  const Result<void> greeted =
      greeting.Receive({.on_value = [](FlatReader&) { return Result<void>(); }});
  if (greeted) return std::move(greeting).Release();
  greeting.Abandon();
  // No file's fault.
  const bool is_refused = greeted.error().code() == ErrorCode::kUnsupported;
  return is_refused ? greeted.error() : Fail(ErrorCode::kIo, "{}", greeted.error().message());
}

void SandboxedIndexer::Return(Reader child) {
  {
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < options_.max_idle && ++child.questions < options_.most_questions) {
      idle_.push_back(std::move(child));
      return;
    }
    --counters_.running;
  }
  // It would end when its socket is closed, unless it does something else by now.
  nursery_->Kill(child.pid);
}

void SandboxedIndexer::GiveUp(const Reader& child, Fate fate) {
  nursery_->Kill(child.pid);
  const std::scoped_lock lock(mutex_);
  --counters_.running;
  ++(fate == Fate::kLate ? counters_.late : counters_.crashed);
}

ReaderCounters SandboxedIndexer::reader_counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

}  // namespace pyrometer
