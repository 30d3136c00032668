// SPDX-License-Identifier: Apache-2.0
#include "indexer/index_child.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/helper_thread.h"
#include "indexer/artifact_codec.h"
#include "indexer/file_reading.h"
#include "indexer/jit_dump_codec.h"

namespace pyrometer {
namespace {

// What a request may leave to the next: more is given back to the kernel.
constexpr int kKeptMemory = 1 << 20;

// A reply, in messages.
class Answer {
 public:
  explicit Answer(const MessageSocket& socket) : socket_(socket) {}

  bool Send(IndexReply kind, std::span<const std::byte> bytes) {
    do {
      const auto part = bytes.first(std::min(bytes.size(), kMostOfMessage - sizeof(kind)));
      std::memcpy(message_.data(), &kind, sizeof(kind));
      if (!part.empty()) std::memcpy(message_.data() + sizeof(kind), part.data(), part.size());
      const auto all = std::span(message_).first(sizeof(kind) + part.size());
      is_heard_ = is_heard_ && socket_.SendBytes(all, -1).has_value();
      bytes = bytes.subspan(part.size());
    } while (is_heard_ && !bytes.empty());
    return is_heard_;
  }
  void Send(const FlatWriter& value) { Send(IndexReply::kValue, value.bytes()); }
  void End(const Result<void>& result) {
    if (result) {
      Send(IndexReply::kDone, {});
      return;
    }
    FlatWriter error;
    Encode(result.error(), error);
    Send(IndexReply::kFailed, error.bytes());
  }

 private:
  const MessageSocket& socket_;
  std::vector<std::byte> message_ = std::vector<std::byte>(kMostOfMessage);
  bool is_heard_ = true;
};

class Rest : public ByteWriter, public RowSink {
 public:
  explicit Rest(Answer& answer) : answer_(answer) {}
  bool Put(std::span<const std::byte> bytes) override {
    return bytes.empty() || answer_.Send(IndexReply::kRest, bytes);
  }
  void Put(std::span<const pyro_unwind_row> rows) override { Put(std::as_bytes(rows)); }

 private:
  Answer& answer_;
};

class Child {
 public:
  explicit Child(MessageSocket socket) : socket_(std::move(socket)) {}

  // Until the other end is closed.
  void Run() {
    IndexRequest request;
    while (Result<UniqueFd> own = socket_.Receive(request)) {
      Answer answer(socket_);
      if (!Take(request)) return;
      answer.End(Do(request, own->get(), answer));
      debug_file_ = {};
      supplement_ = {};
      splits_.clear();
      ::malloc_trim(kKeptMemory);
    }
  }

  // Without it everything takes its time. A machine with one CPU has no use for it.
  void StartHelper() {
    if (std::thread::hardware_concurrency() < 2) return;
    if (auto helper = HelperThread::Start()) helper_ = *std::move(helper);
  }
  void Tell(const Result<void>& result) { Answer(socket_).End(result); }

 private:
  // One that comes after the request.
  struct File {
    UniqueFd fd;
    uint64_t size = 0;

    std::unique_ptr<ByteSource> Bytes() const {
      return fd ? std::unique_ptr<ByteSource>(FileBytes(fd.get(), size)) : nullptr;
    }
  };

  // What comes after the request.
  bool Take(const IndexRequest& request) {
    const auto take = [this](File& into) {
      Result<UniqueFd> file = socket_.Receive(into.size);
      if (!file) return false;
      into.fd = *std::move(file);
      return true;
    };
    if (request.has_debug_file != 0 && !take(debug_file_)) return false;
    if (request.has_supplement != 0 && !take(supplement_)) return false;
    for (uint32_t i = 0; i < request.splits; ++i) {
      if (!take(splits_.emplace_back())) return false;
    }
    value_.resize(request.value_size);
    for (size_t at = 0; at < value_.size();) {
      const Result<size_t> size = socket_.ReceiveSome(std::span(value_).subspan(at));
      if (!size) return false;
      at += *size;
    }
    return true;
  }

  static Result<void> DescribeFile(IndexRequest::What what, std::unique_ptr<ByteSource> file,
                                   FlatWriter& value) {
    if (what == IndexRequest::What::kInspect) {
      ASSIGN_OR_RETURN(const ObjectFacts facts, InspectFile(std::move(file)));
      Encode(facts, value);
    } else if (what == IndexRequest::What::kLinks) {
      ASSIGN_OR_RETURN(const DebugLinks links, ReadLinksOf(std::move(file)));
      Encode(links, value);
    } else {
      ASSIGN_OR_RETURN(const uint32_t checksum, ChecksumOf(*file));
      value.Put(checksum);
    }
    return {};
  }

  FileSources Sources(const IndexRequest& request, int own) const {
    FileSources files{.own = FileBytes(own, request.size),
                      .debug = debug_file_.Bytes(),
                      .supplement = supplement_.Bytes()};
    for (const File& split : splits_) files.splits.push_back(split.Bytes());
    return files;
  }

  Result<void> Do(const IndexRequest& request, int own, Answer& answer) {
    FileSources files = Sources(request, own);
    ReadingRecorder reading(request.key);
    FlatWriter value;
    switch (request.what) {
      case IndexRequest::What::kInspect:
      case IndexRequest::What::kLinks:
      case IndexRequest::What::kChecksum:
        RETURN_IF_ERROR(DescribeFile(request.what, std::move(files.own), value));
        break;
      case IndexRequest::What::kSymbols: {
        Rest bytes(answer);
        ASSIGN_OR_RETURN(const SymbolTableShape shape,
                         ReadSymbolsOf(std::move(files), bytes, reading));
        Encode(shape, value);
        Encode(std::move(reading).Finish(), value);
        break;
      }
      case IndexRequest::What::kSources: {
        Rest bytes(answer);
        HelperThread* const helper = request.may_use_two_threads != 0 ? helper_.get() : nullptr;
        RETURN_IF_ERROR(ReadSourcesOf(std::move(files), bytes, reading, helper));
        Encode(std::move(reading).Finish(), value);
        break;
      }
      case IndexRequest::What::kUnwind: {
        Rest rows(answer);
        ASSIGN_OR_RETURN(const UnwindTable table,
                         CompileTableOf(std::move(files), {.rows = &rows}, reading));
        Encode(table, value);
        Encode(std::move(reading).Finish(), value);
        break;
      }
      case IndexRequest::What::kRepeats: {
        FlatReader in(value_);
        ASSIGN_OR_RETURN(const Reading known, DecodeReading(in));
        ASSIGN_OR_RETURN(const bool repeats, Repeats(known, std::move(files).All()));
        value.Put<uint8_t>(repeats ? 1 : 0);
        break;
      }
      case IndexRequest::What::kPerfMap: {
        ASSIGN_OR_RETURN(const PerfMapEnd end, ReadPerfMap(own, answer));
        Encode(end, value);
        break;
      }
      case IndexRequest::What::kJitDump: {
        ASSIGN_OR_RETURN(const JitDumpEnd end, ReadJitDump(own, answer));
        Encode(end, value);
        break;
      }
      case IndexRequest::What::kBytes: {
        ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         ReadSome(*files.own, FileOffset(request.offset), request.count));
        value.PutAll(std::span(bytes));
        break;
      }
    }
    answer.Send(value);
    return {};
  }

  // Functions go in whole messages.
  Result<PerfMapEnd> ReadPerfMap(int fd, Answer& answer) {
    FlatReader in(value_);
    ASSIGN_OR_RETURN(const PerfMapPart part, DecodePerfMapPart(in));
    FlatWriter functions;
    Rest rest(answer);
    ASSIGN_OR_RETURN(const PerfMapEnd end,
                     ReadPerfMapLines(fd, part, [&](const auto& function, uint64_t offset) {
                       Encode(function, offset, functions);
                       if (functions.bytes().size() < kMostOfMessage / 2) return;
                       rest.Put(functions.bytes());
                       functions = FlatWriter();
                     }));
    rest.Put(functions.bytes());
    return end;
  }

  Result<JitDumpEnd> ReadJitDump(int fd, Answer& answer) {
    FlatReader in(value_);
    ASSIGN_OR_RETURN(const JitDumpPart part, DecodeJitDumpPart(in));
    FlatWriter codes;
    Rest rest(answer);
    ASSIGN_OR_RETURN(const JitDumpEnd end, ReadJitDumpRecords(fd, part, [&](const JitCode& code) {
                       Encode(code, codes);
                       if (codes.bytes().size() < kMostOfMessage / 2) return;
                       rest.Put(codes.bytes());
                       codes = FlatWriter();
                     }));
    rest.Put(codes.bytes());
    return end;
  }

  const MessageSocket socket_;
  File debug_file_;
  File supplement_;
  std::vector<File> splits_;
  std::vector<std::byte> value_;
  std::unique_ptr<HelperThread> helper_;
};

}  // namespace

void ServeIndexing(MessageSocket socket, const SandboxLimits& limits) {
  // All threads share what memory there may be: places of their own would take some of it for good.
  ::mallopt(M_ARENA_MAX, 1);
  Child child(std::move(socket));
  const Result<void> entered = EnterSandbox(limits, [&child] { child.StartHelper(); });
  child.Tell(entered);
  if (!entered) return;
  child.Run();
  // Not by the way of destructors: to end a thread takes more than the filter allows.
  ::_exit(EXIT_SUCCESS);
}

}  // namespace pyrometer
