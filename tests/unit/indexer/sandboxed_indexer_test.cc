// SPDX-License-Identifier: Apache-2.0
#include "indexer/sandboxed_indexer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/helper_thread.h"
#include "indexer/answer_sinks.h"
#include "indexer/artifact_codec.h"
#include "indexer/in_process_indexer.h"
#include "symbolize/jit_dump.h"
#include "symbolize/perf_map.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "unwind/registers.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

UniqueFd Fixture(const char* name = "unwound") {
  return *Open(FixturePath(name), O_RDONLY);
}

std::unique_ptr<SandboxedIndexer> Start(SandboxedIndexer::Options options = {}) {
  Result<std::unique_ptr<SandboxedIndexer>> started = SandboxedIndexer::Start(std::move(options));
  if (!started) throw std::runtime_error(started.error().message());
  return *std::move(started);
}

// One that greets as it should, answers the first question by `answer`, and then goes on as the
// real one. `first`: in memory that all processes share.
class FirstAnswer {
 public:
  explicit FirstAnswer(std::function<void(MessageSocket&)> answer) : answer_(std::move(answer)) {}

  std::unique_ptr<SandboxedIndexer> Start(std::chrono::nanoseconds time = 60s,
                                          std::chrono::nanoseconds quarantine = 10min) {
    return pyrometer::Start({.quarantine = quarantine,
                             .time = [time](uint64_t) { return time; },
                             .work = [this](MessageSocket socket) { Serve(std::move(socket)); }});
  }

 private:
  void Serve(MessageSocket socket) {
    if (!is_first_->exchange(false)) return ServeIndexing(std::move(socket), {});
    const auto done = static_cast<uint32_t>(IndexReply::kDone);
    if (!socket.Send(done)) std::abort();
    IndexRequest request;
    if (!socket.Receive(request)) return;
    answer_(socket);
  }

  const std::function<void(MessageSocket&)> answer_;
  std::atomic<bool>* const is_first_ =
      new (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<bool>(true);
};

// True if there is an honest answer again. One more may be lost: of a process that has answered,
// and then ends.
bool Recovers(SandboxedIndexer& indexer) {
  const UniqueFd file = Fixture("pie");
  const UniqueFd other = Fixture("stripped");
  return indexer.Inspect(file.get()).has_value() || indexer.Inspect(other.get()).has_value();
}

std::vector<std::byte> Message(IndexReply kind, std::span<const std::byte> bytes = {}) {
  std::vector<std::byte> message(sizeof(kind) + bytes.size());
  std::memcpy(message.data(), &kind, sizeof(kind));
  std::ranges::copy(bytes, message.begin() + sizeof(kind));
  return message;
}

// What a process of the sandbox does in a test, instead of reading files; true if that was allowed.
bool IsAllowed(const std::function<void()>& action, bool of_another_thread = false) {
  FirstAnswer child([&](MessageSocket& socket) {
    std::unique_ptr<HelperThread> helper;
    if (!EnterSandbox({}, [&helper] { helper = *HelperThread::Start(); })) std::abort();
    if (of_another_thread) {
      helper->Begin(action);
      helper->Await();
    } else {
      action();
    }
    const auto done = static_cast<uint32_t>(IndexReply::kDone);
    if (!socket.Send(done)) std::abort();
  });
  const auto indexer = child.Start();
  const UniqueFd file = Fixture();
  const Result<ObjectFacts> answer = indexer->Inspect(file.get());
  const bool has_ended = answer.error().message().find("has ended") != std::string::npos;
  // An answer without a value is nonsense, but it came; and the next process answers.
  EXPECT_FALSE(answer.has_value());
  EXPECT_TRUE(Recovers(*indexer));
  return !has_ended;
}

TEST(Sandbox, AllowsMemoryAndMessagesOnly) {
  EXPECT_TRUE(IsAllowed([] {}));
  EXPECT_TRUE(IsAllowed([] { std::vector<char>(10 << 20, 'x').shrink_to_fit(); }));
  EXPECT_FALSE(IsAllowed([] { ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); }));
  EXPECT_FALSE(IsAllowed([] { ::socket(AF_INET, SOCK_STREAM, 0); }));
  EXPECT_FALSE(IsAllowed([] { ::kill(::getppid(), 0); }));
  EXPECT_FALSE(IsAllowed([] { ::fork(); }));
  EXPECT_FALSE(IsAllowed([] { ::execl("/bin/true", "true", nullptr); }));
  EXPECT_FALSE(IsAllowed([] { ::write(STDOUT_FILENO, "x", 1) < 0 ? std::abort() : void(); }));
  EXPECT_FALSE(IsAllowed(
      [] { ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }));
  EXPECT_FALSE(IsAllowed([] { ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0); }));
}

TEST(Sandbox, HoldsEachThread) {
  EXPECT_TRUE(IsAllowed([] { std::vector<char>(10 << 20, 'x').shrink_to_fit(); }, true));
  EXPECT_FALSE(IsAllowed([] { ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); }, true));
  EXPECT_FALSE(IsAllowed([] { std::thread([] {}).join(); }, true));
}

TEST(Sandbox, HasNoCapabilitiesAndNoFiles) {
  const auto indexer = Start();
  // The one that waits for the first question: each of its threads.
  size_t most_threads = 0;
  std::error_code gone;  // others' may end meanwhile
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const Result<std::string> name = ReadFile(process.path() / "comm");
    const Result<std::string> status = ReadFile(process.path() / "status");
    if (!name || *name != "pyrometer-index\n" || !status) continue;
    if (status->find("Seccomp:\t2") == std::string::npos) continue;
    size_t threads = 0;
    for (const auto& thread : std::filesystem::directory_iterator(process.path() / "task", gone)) {
      const Result<std::string> text = ReadFile(thread.path() / "status");
      if (!text) continue;
      ++threads;
      EXPECT_NE(text->find("Seccomp:\t2"), std::string::npos) << *text;
      EXPECT_NE(text->find("CapEff:\t0000000000000000"), std::string::npos);
      EXPECT_NE(text->find("CapPrm:\t0000000000000000"), std::string::npos);
      EXPECT_NE(text->find("NoNewPrivs:\t1"), std::string::npos);
    }
    most_threads = std::max(most_threads, threads);
  }
  EXPECT_EQ(most_threads, std::thread::hardware_concurrency() > 1 ? 2U : 1U);
}

// Not by what the filter forbids: that is for attacks.
TEST(Sandbox, IsLeftInPeace) {
  auto ends = *MessageSocket::Pair();
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ends.first = {};
    ServeIndexing(std::move(ends.second), {});
    ::_exit(EXIT_FAILURE);
  }
  ends.second = {};
  std::vector<std::byte> greeting(kMostOfMessage);
  EXPECT_TRUE(ends.first.ReceiveSome(greeting));
  ends.first = {};
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) << status;
}

TEST(SandboxedIndexer, DoesNotStartWithoutASandbox) {
  const Result<std::unique_ptr<SandboxedIndexer>> started =
      SandboxedIndexer::Start({.work = [](MessageSocket socket) {
        FlatWriter error;
        Encode(Fail(ErrorCode::kUnsupported, "seccomp: Operation not permitted"), error);
        if (!socket.SendBytes(Message(IndexReply::kFailed, error.bytes()), -1)) std::abort();
      }});
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(started.error().message(), "seccomp: Operation not permitted");
}

TEST(SandboxedIndexer, GoesOnWithAnotherProcessWhenOneIsKilled) {
  FirstAnswer child([](MessageSocket&) { ::kill(::getpid(), SIGKILL); });
  const auto indexer = child.Start();
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Inspect(file.get()).error().code(), ErrorCode::kCrashed);
  EXPECT_TRUE(indexer->Inspect(Fixture("pie").get()).has_value());
  EXPECT_EQ(indexer->reader_counters().crashed, 1U);
  EXPECT_EQ(indexer->reader_counters().started, 2U);
}

TEST(SandboxedIndexer, LeavesAFileAloneThatHasEndedAProcess) {
  FirstAnswer child([](MessageSocket&) { ::kill(::getpid(), SIGKILL); });
  const auto indexer = child.Start();
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Inspect(file.get()).error().code(), ErrorCode::kCrashed);
  EXPECT_EQ(indexer->Inspect(file.get()).error().code(), ErrorCode::kCrashed);
  EXPECT_EQ(indexer->reader_counters().started, 1U) << "no other was asked";
  EXPECT_TRUE(indexer->Symbols({.own = file.get()}, {}).has_value())
      << "for another purpose it is read";
}

// Else whoever writes to it would cost a window another process's time each time.
TEST(SandboxedIndexer, LeavesAJitDumpAloneWhateverIsWrittenToItMeanwhile) {
  FirstAnswer child([](MessageSocket&) { ::kill(::getpid(), SIGKILL); });
  const auto indexer = child.Start();
  const UniqueFd file(::memfd_create("jitdump", MFD_CLOEXEC));
  for (const char* const line : {"one", "two"}) {
    ASSERT_TRUE(WriteAll(file.get(), line).has_value());
    const auto end = indexer->JitDumpRecords(file.get(), {}, [](const JitCode&) {});
    EXPECT_EQ(end.error().code(), ErrorCode::kCrashed);
  }
  EXPECT_EQ(indexer->reader_counters().started, 1U) << "no other was asked";
}

TEST(SandboxedIndexer, ReadsAFileAgainAfterAWhile) {
  FirstAnswer child([](MessageSocket&) { ::kill(::getpid(), SIGKILL); });
  const auto indexer = child.Start(60s, 0s);
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Inspect(file.get()).error().code(), ErrorCode::kCrashed);
  EXPECT_TRUE(indexer->Inspect(file.get()).has_value());
}

TEST(SandboxedIndexer, HasSourceLinesReadByAProcessThatHasReadNothingElse) {
  const auto indexer = Start();
  const UniqueFd file = Fixture();
  EXPECT_TRUE(indexer->Inspect(file.get()).has_value());
  EXPECT_EQ(indexer->reader_counters().started, 1U);
  for (uint64_t n = 2; n < 5; ++n) {
    EXPECT_TRUE(indexer->Sources({.own = file.get()}, {}).has_value());
    EXPECT_EQ(indexer->reader_counters().started, n);
  }
  EXPECT_LE(indexer->reader_counters().running, 2U);
}

TEST(SandboxedIndexer, AsksNoProcessForEver) {
  const auto indexer = Start({.most_questions = 3});
  const UniqueFd file = Fixture();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(indexer->Inspect(file.get()).has_value());
  EXPECT_GT(indexer->reader_counters().started, 2U);
  EXPECT_EQ(indexer->reader_counters().crashed, 0U);
}

TEST(SandboxedIndexer, KillsAProcessThatDoesNotAnswerInTime) {
  FirstAnswer child([](MessageSocket&) { ::pause(); });
  const auto indexer = child.Start(200ms);
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Symbols({.own = file.get()}, {}).error().code(), ErrorCode::kCrashed);
  EXPECT_EQ(indexer->reader_counters().late, 1U);
  EXPECT_EQ(indexer->reader_counters().running, 0U);
}

// Each of its messages says nothing, and the next one is there when that is read.
TEST(SandboxedIndexer, KillsAProcessThatAnswersForEver) {
  FirstAnswer child([](MessageSocket& socket) {
    while (socket.Send(IndexReply::kRest).has_value()) continue;
  });
  const auto indexer = child.Start(200ms);
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Symbols({.own = file.get()}, {}).error().code(), ErrorCode::kCrashed);
  EXPECT_EQ(indexer->reader_counters().late, 1U);
}

TEST(SandboxedIndexer, EndsAReadingThatIsNoLongerWanted) {
  FirstAnswer child([](MessageSocket&) { ::pause(); });
  const auto indexer = child.Start();
  const UniqueFd file = Fixture();
  std::stop_source stop;
  const std::jthread stopping([&] { stop.request_stop(); });
  const auto table = indexer->Unwind({.own = file.get()}, {.stop = stop.get_token()});
  EXPECT_EQ(table.error().code(), ErrorCode::kExhausted);
}

TEST(SandboxedIndexer, LosesAProcessThatTakesTooMuchMemory) {
  FirstAnswer child([](MessageSocket&) {
    if (!EnterSandbox({.memory = 64 << 20})) std::abort();
    std::vector<std::vector<char>> taken;
    while (true) taken.emplace_back(1 << 20, 'x');
  });
  const auto indexer = child.Start();
  const UniqueFd file = Fixture();
  EXPECT_EQ(indexer->Inspect(file.get()).error().code(), ErrorCode::kCrashed);
}

TEST(SandboxedIndexer, BelievesNoAnswer) {
  const std::vector<std::byte> ones(1000, std::byte{0xff});
  const std::vector<std::byte> zeros(1000);
  std::vector<std::vector<std::vector<std::byte>>> lies;
  for (const auto& bytes : {ones, zeros}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, size_t{999}, size_t{1000}}) {
      const auto part = std::span(bytes).first(size);
      lies.push_back({Message(IndexReply::kValue, part), Message(IndexReply::kDone)});
      lies.push_back({Message(IndexReply::kRest, part), Message(IndexReply::kDone)});
      lies.push_back({Message(IndexReply::kFailed, part)});
      lies.push_back({Message(static_cast<IndexReply>(size + 4), part)});
    }
  }
  lies.push_back({{std::byte{1}}});
  for (const auto& lie : lies) {
    for (const auto what :
         {IndexRequest::What::kInspect, IndexRequest::What::kSymbols, IndexRequest::What::kUnwind,
          IndexRequest::What::kBytes, IndexRequest::What::kPerfMap, IndexRequest::What::kJitDump}) {
      FirstAnswer child([&](MessageSocket& socket) {
        for (const auto& message : lie) {
          if (!socket.SendBytes(message, -1)) return;
        }
      });
      const auto indexer = child.Start();
      const UniqueFd file = Fixture();
      // Whatever it is, it is safe to use.
      if (what == IndexRequest::What::kInspect) indexer->Inspect(file.get()).has_value();
      if (what == IndexRequest::What::kBytes) {
        const auto bytes = indexer->Bytes(file.get(), FileOffset(0), 100);
        EXPECT_TRUE(!bytes || bytes->size() <= 100);
      }
      if (what == IndexRequest::What::kSymbols) {
        if (const auto made = indexer->Symbols({.own = file.get()}, {})) {
          made->value.Find(ElfAddress(0));
          made->value.Find(ElfAddress(~uint64_t{0}));
        }
      }
      if (what == IndexRequest::What::kPerfMap) {
        PerfMap map;
        map.Update(file.get(), PerfMap::Writer::kMayWrite,
                   [&](int fd, const PerfMapPart& part, OnPerfMapFunction on_function) {
                     return indexer->PerfMapLines(fd, part, on_function);
                   })
            .has_value();
        map.Find(Address(0));
      }
      if (what == IndexRequest::What::kJitDump) {
        JitDump dump(size_t{1} << 20);
        dump.Update(file.get(), /*has_stopped=*/false, MonotonicNow(),
                    [&](int fd, const JitDumpPart& part, OnJitCode on_code) {
                      return indexer->JitDumpRecords(fd, part, on_code);
                    })
            .has_value();
        dump.Find(Address(0), MonotonicNow());
      }
      if (what == IndexRequest::What::kUnwind) {
        if (const auto made = indexer->Unwind({.own = file.get()}, {})) {
          made->value.RuleAt(ElfAddress(0));
          made->value.RuleAt(ElfAddress(made->value.first_page << PYRO_UNWIND_PAGE_SHIFT));
        }
      }
      EXPECT_TRUE(Recovers(*indexer));
    }
  }
}

// Rules for registers that there are not would be followed with our memory.
TEST(SandboxedIndexer, BelievesInNoOtherRegisters) {
  for (const uint8_t reg : {uint8_t{0}, uint8_t{kCfiRegisters - 1}, uint8_t{kCfiRegisters}}) {
    for (const bool of_return_address : {false, true}) {
      ExoticRule::OfRegister of;
      of.reg = of_return_address ? 0 : reg;
      ExoticRule rule;
      rule.registers = {of};
      rule.return_address = of_return_address ? reg : 0;
      pyro_unwind_rule none{};
      none.kind = PYRO_RULE_NONE;
      UnwindTable table;
      table.rules = {none};
      table.exotic = {rule};
      FlatWriter out;
      Encode(table, out);
      RowsInMemory no_rows;
      FlatReader in(out.bytes());
      EXPECT_EQ(ForeignRows(no_rows).DecodeTable(in).has_value(), reg < kCfiRegisters) << int{reg};
    }
  }
}

// Others would be long about comparing it.
TEST(SandboxedIndexer, TakesNoReadingForComparableThatHasReadAFileManyTimes) {
  for (const uint64_t times : {1, 16, 20}) {
    Reading reading;
    reading.sizes = {4096};
    for (uint64_t i = 0; i < times; ++i) reading.pieces.push_back({.offset = 0, .size = 4096});
    FlatWriter out;
    Encode(reading, out);
    FlatReader in(out.bytes());
    const Result<Reading> decoded = DecodeReading(in);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->is_complete, times <= 16) << times;
  }
  Reading beyond;
  beyond.sizes = {4096};
  beyond.pieces = {{.offset = 4000, .size = 97}};
  FlatWriter out;
  Encode(beyond, out);
  FlatReader in(out.bytes());
  EXPECT_FALSE(DecodeReading(in).has_value());
}

TEST(SandboxedIndexer, MakesWhatTheOtherIndexerMakes) {
  const auto sandboxed = Start();
  InProcessIndexer direct;
  size_t compared = 0;
  for (const char* path : {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6", "/bin/bash",
                           "/lib/aarch64-linux-gnu/libc.so.6", "/usr/bin/python3"}) {
    const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file) continue;
    ++compared;
    EXPECT_EQ(sandboxed->Inspect(file.get())->segments, direct.Inspect(file.get())->segments);
    const UnwindTable theirs = sandboxed->Unwind({.own = file.get()}, {})->value;
    const UnwindTable ours = direct.Unwind({.own = file.get()}, {})->value;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(theirs.rows)),
                                   std::as_bytes(std::span(ours.rows))));
    EXPECT_EQ(theirs.rules.size(), ours.rules.size());
    EXPECT_EQ(theirs.exotic, ours.exotic);
    EXPECT_EQ(theirs.functions, ours.functions);
    EXPECT_EQ(theirs.covered_text, ours.covered_text);
    const SymbolTable symbols = sandboxed->Symbols({.own = file.get()}, {})->value;
    const SymbolTable same = direct.Symbols({.own = file.get()}, {})->value;
    EXPECT_EQ(symbols.size(), same.size());
    EXPECT_EQ(symbols.bytes(), same.bytes());
    for (uint64_t address = 0; address < 0x200000; address += 4093) {
      const std::optional<Symbol> a = symbols.Find(ElfAddress(address));
      const std::optional<Symbol> b = same.Find(ElfAddress(address));
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a) continue;
      ASSERT_EQ(std::tie(a->name, a->start, a->size), std::tie(b->name, b->start, b->size));
    }
  }
  EXPECT_GE(compared, 2U);
}

}  // namespace
}  // namespace pyrometer
