// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader.h"

#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "foreign/reader_messages.h"

namespace pyrometer {
namespace {

// Before anything is asked, there is nobody to tell.
[[noreturn]] void End() {
  ::_exit(EXIT_SUCCESS);
}

// What the handler of SIGPROF sends, and where: made before, since it may not allocate.
struct LastWords {
  int fd = -1;
  std::array<std::byte, 128> bytes{};
  size_t size = 0;
};
LastWords last_words;

void SayTooMuchCpu(int /*signal*/) {
  iovec buffer{last_words.bytes.data(), last_words.size};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  ::sendmsg(last_words.fd, &message, MSG_NOSIGNAL);
  End();
}

void PrepareLastWords(int fd) {
  FlatWriter out;
  out.Put(ReaderMessage::kFailed);
  out.Put(ErrorCode::kIo);
  const std::string_view text = "reading it takes more CPU time than a file may have";
  out.PutAll(std::as_bytes(std::span(text)));
  last_words.fd = fd;
  last_words.size = out.bytes().size();
  std::memcpy(last_words.bytes.data(), out.bytes().data(), last_words.size);
  struct sigaction action {};
  action.sa_handler = SayTooMuchCpu;
  ::sigaction(SIGPROF, &action, nullptr);
}

// 0: no more.
void LimitCpu(uint64_t milliseconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(milliseconds / 1000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(milliseconds % 1000 * 1000);
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

class Reader : private RowSink, private SymbolByteSink {
 public:
  Reader(ReaderChannel channel, Indexer& indexer)
      : channel_(std::move(channel)), indexer_(indexer) {}

  void Run() {
    while (Result<ReaderChannel::Message> message = channel_.Receive()) {
      if (message->kind != ReaderMessage::kTask) return;
      FlatReader in(message->bytes);
      const auto task = in.Get<ReaderTask>();
      const UniqueFd own = std::move(message->attached);
      if (!in.ended() || !own) return;
      LimitCpu(task.cpu_ms);
      const bool goes_on = Serve(task, own);
      LimitCpu(0);
      if (!goes_on) return;
      // A reader that waits costs little; to give back what the headers took would cost more.
      const bool is_large = task.what == ReaderTask::What::kSymbols ||
                            task.what == ReaderTask::What::kSources ||
                            task.what == ReaderTask::What::kUnwind;
      if (is_large) {
        ::malloc_trim(0);
      }
    }
  }

 private:
  // False: the process is in no state to go on.
  bool Serve(const ReaderTask& task, const UniqueFd& own) {
    try {
      FlatWriter out;
      const Result<void> done = Do(task, own, out);
      const Result<void> sent =
          done ? channel_.SendAndEnd(out.bytes()) : channel_.SendFailure(done.error());
      return sent.has_value();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    channel_
        .SendFailure(
            Fail(ErrorCode::kExhausted, "reading it takes more memory than a file may have"))
        .has_value();  // the parent is there, or not
    return false;
  }

  Result<void> Do(const ReaderTask& task, const UniqueFd& own, FlatWriter& out) {
    ASSIGN_OR_RETURN(const UniqueFd debug, ReceiveOther(task, ReaderTask::kDebugFile));
    ASSIGN_OR_RETURN(const UniqueFd alternate, ReceiveOther(task, ReaderTask::kAlternate));
    std::vector<std::byte> value;
    while (value.size() < task.value_bytes) {
      ASSIGN_OR_RETURN(const ReaderChannel::Message message, channel_.Receive());
      if (message.kind != ReaderMessage::kValue || message.bytes.empty()) End();
      value.insert(value.end(), message.bytes.begin(), message.bytes.end());
    }
    const FilesToRead files{.own = own.get(), .debug = debug.get(), .alternate = alternate.get()};
    return Answer(task.what, files, value, out);
  }

  // None, if the task has none.
  Result<UniqueFd> ReceiveOther(const ReaderTask& task, uint32_t which) {
    if ((task.others & which) == 0) return UniqueFd();
    ASSIGN_OR_RETURN(ReaderChannel::Message message, channel_.Receive());
    if (message.kind != ReaderMessage::kOtherFile || !message.attached) End();
    return std::move(message.attached);
  }

  Result<void> Answer(ReaderTask::What what, const FilesToRead& files,
                      std::span<const std::byte> value, FlatWriter& out) {
    switch (what) {
      case ReaderTask::What::kInspect: {
        ASSIGN_OR_RETURN(const ObjectFacts facts, indexer_.Inspect(files.own));
        Write(facts, out);
        return {};
      }
      case ReaderTask::What::kLinks: {
        ASSIGN_OR_RETURN(const DebugLinks links, indexer_.Links(files.own));
        Write(links, out);
        return {};
      }
      case ReaderTask::What::kChecksum: {
        ASSIGN_OR_RETURN(const uint32_t checksum, indexer_.Checksum(files.own));
        out.Put(checksum);
        return {};
      }
      case ReaderTask::What::kSymbols:
      case ReaderTask::What::kSources: {
        const SymbolTableOptions options{.with_debug_info = what == ReaderTask::What::kSources,
                                         .bytes = this};
        ASSIGN_OR_RETURN(const Made<SymbolTable> made, indexer_.Symbols(files, options));
        Write(made.value.layout(), out);
        Write(made.reading, out);
        return {};
      }
      case ReaderTask::What::kUnwind: {
        ASSIGN_OR_RETURN(const Made<UnwindTable> made, indexer_.Unwind(files, {.rows = this}));
        Write(made.value, out);
        Write(made.reading, out);
        return {};
      }
      case ReaderTask::What::kCode: {
        FlatReader in(value);
        const auto offset = in.Get<uint64_t>();
        if (!in.ended()) End();
        ASSIGN_OR_RETURN(const std::vector<std::byte> code, indexer_.ReadCode(files.own, offset));
        out.PutAll(std::span<const std::byte>(code));
        return {};
      }
      case ReaderTask::What::kPerfMap:
        return AnswerPerfMap(files, value, out);
      case ReaderTask::What::kJitDump:
        return AnswerJitDump(files, value, out);
      case ReaderTask::What::kRepeats: {
        FlatReader in(value);
        const Reading reading = ReadReading(in);
        if (!in.ended()) End();
        ASSIGN_OR_RETURN(const bool repeats, indexer_.Repeats(files, reading));
        out.Put(uint8_t{repeats});
        return {};
      }
    }
    End();
  }

  Result<void> AnswerPerfMap(const FilesToRead& files, std::span<const std::byte> value,
                             FlatWriter& out) {
    FlatReader in(value);
    const PerfMapPart part = ReadPerfMapPart(in);
    if (!in.ended()) End();
    const auto send = [this](const PerfMapLines& lines) { PutValue(lines); };
    ASSIGN_OR_RETURN(const std::optional<PerfMapFunction> last,
                     indexer_.PerfMapLines(files.own, part, {}, send));
    Write(last, out);
    return {};
  }

  Result<void> AnswerJitDump(const FilesToRead& files, std::span<const std::byte> value,
                             FlatWriter& out) {
    FlatReader in(value);
    const JitDumpPart part = ReadJitDumpPart(in);
    if (!in.ended()) End();
    const auto send = [this](const JitDumpRecords& records) { PutValue(records); };
    ASSIGN_OR_RETURN(const bool is_all, indexer_.JitDumpRecords(files.own, part, {}, send));
    out.Put(uint8_t{is_all});
    return {};
  }

  void Put(std::span<const pyro_unwind_row> rows) override {
    if (!channel_.SendAll(ReaderMessage::kBulk, std::as_bytes(rows))) End();
  }
  bool Put(std::span<const std::byte> bytes) override {
    return channel_.SendAll(ReaderMessage::kBulk, bytes).has_value();
  }

  template <typename T>
  void PutValue(const T& value) {
    FlatWriter out;
    Write(value, out);
    if (!channel_.Send(ReaderMessage::kBulk, out.bytes())) End();
  }

  ReaderChannel channel_;
  Indexer& indexer_;
};

}  // namespace

void ServeReader(MessageSocket socket, Sandbox& sandbox, Indexer& indexer) {
  ReaderChannel channel(std::move(socket));
  const Result<ReaderChannel::Message> message = channel.Receive();
  if (!message || message->kind != ReaderMessage::kSetup) return;
  FlatReader in(message->bytes);
  const auto setup = in.Get<ReaderSetup>();
  if (!in.ended()) return;
  PrepareLastWords(channel.fd());
  const Result<SandboxLevel> level = sandbox.Close(setup.memory);
  const Result<void> sent =
      level ? channel.SendOne(ReaderMessage::kReady, *level) : channel.SendFailure(level.error());
  if (level && sent) Reader(std::move(channel), indexer).Run();
}

}  // namespace pyrometer
