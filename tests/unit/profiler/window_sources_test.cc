// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/direct_foreign_files.h"
#include "base/file.h"
#include "debuginfod/debuginfod_client.h"
#include "indexer/in_process_indexer.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/indexer/made_up_sources.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

constexpr WindowSources::Patience kPatient{.symbols = 60s, .sources = 60s, .jit = 60s};

constexpr ObjectId kSelf{7};
constexpr ObjectId kGone{8};
constexpr ObjectId kText{9};  // no ELF file
constexpr ObjectId kStripped{10};
constexpr ProcessKey kProcess{Pid(100), StartTime(5)};

ObjectRef RefTo(const char* path, const char* file) {
  ObjectInfo info;
  info.path = path;
  ObjectFile open =
      file == nullptr ? nullptr : std::make_shared<const UniqueFd>(*Open(file, O_RDONLY));
  return {std::make_shared<ObjectInfo>(std::move(info)), std::move(open)};
}

std::shared_ptr<const ObjectInfo> WithBuildId(ObjectInfo info) {
  constexpr std::array kBytes{std::byte{1}, std::byte{2}};
  info.build_id = BuildId(kBytes);
  return std::make_shared<ObjectInfo>(std::move(info));
}

ResolvedWindow WindowOfObjects() {
  ResolvedWindow window;
  window.objects[kSelf] = RefTo("/bin/self", "/proc/self/exe");
  window.objects[kGone] = RefTo("/bin/gone", nullptr);
  window.objects[kText] = RefTo("/etc/passwd", "/etc/passwd");
  return window;
}

bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// A process that has no file for who asks first, and the program that runs for all others.
void ServeFromTheSecondQuestionOn(const MessageSocket& socket) {
  socket.Send(DownloadReply{.what = DownloadReply::What::kReady}).has_value();
  DownloadRequest request;
  while (socket.Receive(request)) {
    static bool is_second = false;
    const UniqueFd file = *Open("/proc/self/exe", O_RDONLY);
    const DownloadReply reply{.what = is_second ? DownloadReply::What::kFound
                                                : DownloadReply::What::kNone};
    socket.Send(reply, is_second ? file.get() : -1).has_value();
    is_second = true;
  }
}

// Can be held up, and may be held beyond the end of a test. Its source lines are made up: to read
// those of a test takes seconds, and with sanitizers longer than a test should wait.
class SlowIndexer : public InProcessIndexer {
 public:
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override {
    if (before_reading) before_reading();
    return InProcessIndexer::Symbols(files, options);
  }
  Result<Made<SourceMap>> Sources(const FilesToRead& files,
                                  const SymbolTableOptions& /*options*/) override {
    if (before_sources) before_sources();
    if (file_systems_are_hung) return Fail(ErrorCode::kIo, "the file system does not answer");
    return ReadMadeUpSources(files.own);
  }
  Result<JitDumpEnd> JitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code) override {
    if (before_jit_dump) before_jit_dump();
    return InProcessIndexer::JitDumpRecords(fd, part, on_code);
  }
  std::function<void()> before_reading;
  std::function<void()> before_sources;
  std::function<void()> before_jit_dump;
  std::atomic<bool> file_systems_are_hung = false;
};

class WindowSourcesTest : public testing::Test {
 protected:
  void Use(WindowSources& sources) {
    ResolvedWindow window = WindowOfObjects();
    sources.Use(window);
  }
  struct Telling {
    bool named_by_sources = false;
  };
  void UseTelling(WindowSources& sources, const Telling& telling) {
    ResolvedWindow window = WindowOfObjects();
    ObjectInfo info = *window.objects[kSelf].info;
    info.may_tell_sources = true;
    info.named_by_sources = telling.named_by_sources;
    window.objects[kSelf].info = std::make_shared<ObjectInfo>(std::move(info));
    sources.Use(window);
  }
  void UseTelling(WindowSources& sources) { UseTelling(sources, {}); }

  std::shared_ptr<SlowIndexer> indexer_ = std::make_shared<SlowIndexer>();
  FileWorkers workers_;
  ArtifactStore store_{{.indexer = indexer_, .workers = workers_}, size_t{64} << 20};
  WindowSources sources_{{.store = store_}, kPatient};
};

TEST_F(WindowSourcesTest, AnswerFromTheWindowAlone) {
  Use(sources_);
  EXPECT_EQ(sources_.Describe(kSelf)->path, "/bin/self");
  EXPECT_NE(sources_.Symbols(kSelf).table, nullptr);
  EXPECT_EQ(sources_.Describe(kGone)->path, "/bin/gone");
  EXPECT_EQ(sources_.Symbols(kGone).reason, Unresolved::kFileGone);
  EXPECT_EQ(sources_.Symbols(kText).reason, Unresolved::kUnreadable);
  EXPECT_FALSE(sources_.Describe(ObjectId(20)).has_value());
  EXPECT_EQ(sources_.OpenPerfMap(kProcess).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(sources_.OpenJitDump(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST_F(WindowSourcesTest, KnowNothingBetweenWindows) {
  Use(sources_);
  sources_.Clear();
  EXPECT_FALSE(sources_.Describe(kSelf).has_value());
  EXPECT_EQ(sources_.Symbols(kSelf).reason, Unresolved::kFileGone);
  EXPECT_EQ(sources_.OpenPerfMap(kProcess).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(sources_.OpenJitDump(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST_F(WindowSourcesTest, ReadNothingOnceItIsTooLate) {
  sources_.GiveUpAt(std::chrono::steady_clock::now());
  Use(sources_);
  EXPECT_EQ(sources_.Describe(kSelf)->path, "/bin/self");
  EXPECT_EQ(sources_.Symbols(kSelf).reason, Unresolved::kNotReady);
  EXPECT_EQ(store_.counters().symbols_made, 0U);
}

TEST_F(WindowSourcesTest, GoOnWithoutSymbolsThatTakeLongerThanAWindowMayWait) {
  const auto go_on = std::make_shared<std::latch>(1);
  indexer_->before_reading = [go_on] { go_on->wait(); };
  {
    WindowSources impatient({.store = store_}, {.symbols = 0s});
    Use(impatient);
    EXPECT_EQ(impatient.Symbols(kSelf).reason, Unresolved::kNotReady);
  }
  go_on->count_down();
}

// Debug information of large programs takes seconds to read, symbols of most take milliseconds.
TEST_F(WindowSourcesTest, TakeNoTimeFromSymbolsForSourceLinesThatAreLate) {
  const auto go_on = std::make_shared<std::latch>(1);
  indexer_->before_sources = [go_on] { go_on->wait(); };
  indexer_->before_reading = [] { std::this_thread::sleep_for(20ms); };
  {
    WindowSources sources({.store = store_}, {.symbols = 60s, .sources = 10ms});
    UseTelling(sources);
    const SourceAnswer late = sources.Sources(kSelf);
    EXPECT_EQ(late.map, nullptr);
    EXPECT_TRUE(late.is_coming);
    EXPECT_NE(sources.Symbols(kSelf).table, nullptr);
    go_on->count_down();
    EXPECT_TRUE(Eventually([&] {
      UseTelling(sources);
      return sources.Sources(kSelf).map != nullptr;
    }));
  }
}

TEST_F(WindowSourcesTest, AskAgainForLinesOfAFileWhoseFileSystemDidNotAnswer) {
  indexer_->file_systems_are_hung = true;
  for (int window = 0; window < 2; ++window) {
    UseTelling(sources_);
    const SourceAnswer answer = sources_.Sources(kSelf);
    EXPECT_EQ(answer.map, nullptr);
    EXPECT_TRUE(answer.is_coming);
  }
  indexer_->file_systems_are_hung = false;
  UseTelling(sources_);
  EXPECT_NE(sources_.Sources(kSelf).map, nullptr);
}

// Else windows that come fast would be dropped, with the ticks in them.
TEST_F(WindowSourcesTest, WaitForNoSourceLinesWhileAnotherWindowWaitsToBeNamed) {
  const auto go_on = std::make_shared<std::latch>(1);
  indexer_->before_sources = [go_on] { go_on->wait(); };
  std::atomic<int> looks = 0;
  {
    WindowSources sources({.store = store_, .is_behind = [&] { return ++looks > 3; }}, kPatient);
    UseTelling(sources);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(sources.Sources(kSelf).is_coming);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    EXPECT_EQ(looks, 4);
    EXPECT_NE(sources.Symbols(kSelf).table, nullptr) << "for these it waits";
    go_on->count_down();
  }
}

// As for symbols: a stripped Go program has no others.
TEST_F(WindowSourcesTest, WaitForNamesThatComeWithSourceLines) {
  indexer_->before_sources = [] { std::this_thread::sleep_for(100ms); };
  WindowSources sources({.store = store_, .is_behind = [] { return true; }},
                        {.symbols = 60s, .sources = 0s});
  UseTelling(sources, {.named_by_sources = true});
  EXPECT_NE(sources.Sources(kSelf).map, nullptr);
}

TEST_F(WindowSourcesTest, ReadNamesThatComeWithSourceLinesAhead) {
  UseTelling(sources_, {.named_by_sources = true});
  EXPECT_TRUE(Eventually([&] { return store_.counters().sources_made == 1U; }));
}

// Whoever runs may write jitdumps that take long to read.
TEST_F(WindowSourcesTest, ReadNoMoreOfJitCompilersThanAWindowHasTimeFor) {
  TemporaryTree tree;
  tree.File("jit-1.dump", "anything");
  const auto use = [&](WindowSources& sources) {
    ResolvedWindow window;
    window.jit_dumps[kProcess] = std::make_shared<JitDumpFile>(
        *JitDumpFile::Of(*Open(tree.Path("jit-1.dump"), O_PATH), "jit-1.dump",
                         std::make_shared<DirectForeignFiles>()));
    sources.Use(window);
  };
  indexer_->before_jit_dump = [] { std::this_thread::sleep_for(600ms); };
  WindowSources sources({.store = store_}, {.jit = 500ms});
  use(sources);
  const Result<UniqueFd> file = sources.OpenJitDump(kProcess);
  ASSERT_TRUE(file);
  EXPECT_TRUE(sources.ReadJitDump(kProcess, file->get(), {.size = 8}, [](const JitCode&) {}));
  EXPECT_FALSE(sources.HasTime());
  EXPECT_EQ(sources.OpenJitDump(kProcess).error().code(), ErrorCode::kExhausted);
  use(sources);
  EXPECT_TRUE(sources.HasTime());
}

TEST_F(WindowSourcesTest, HaveInALaterWindowWhatWasLate) {
  const auto go_on = std::make_shared<std::latch>(1);
  indexer_->before_reading = [go_on] { go_on->wait(); };
  Use(sources_);
  sources_.GiveUpAt(std::chrono::steady_clock::now());
  EXPECT_EQ(sources_.Symbols(kSelf).reason, Unresolved::kNotReady);
  go_on->count_down();
  sources_.GiveUpAt(std::chrono::steady_clock::time_point::max());
  Use(sources_);
  EXPECT_NE(sources_.Symbols(kSelf).table, nullptr);
}

// More files may be in use than are held open.
TEST_F(WindowSourcesTest, HaveSymbolsThatWereReadWhileTheFileWasHeld) {
  for (const bool has_build_id : {true, false}) {
    const auto use = [&](const char* file) {
      ResolvedWindow window;
      window.objects[kSelf] = RefTo("/bin/self", file);
      if (has_build_id) window.objects[kSelf].info = WithBuildId(*window.objects[kSelf].info);
      sources_.Use(window);
    };
    use("/proc/self/exe");
    EXPECT_NE(sources_.Symbols(kSelf).table, nullptr);
    use(nullptr);
    EXPECT_EQ(sources_.Symbols(kSelf).table != nullptr, has_build_id)
        << "it may have been overwritten";
  }
}

TEST_F(WindowSourcesTest, ForgetObjectsThatNobodyHasMapped) {
  for (int window = 0; window < 2; ++window) {
    UseTelling(sources_);
    EXPECT_NE(sources_.Symbols(kSelf).table, nullptr);
    EXPECT_NE(sources_.Sources(kSelf).map, nullptr);
  }
  const ArtifactStore::Counters made = store_.counters();
  sources_.Clear();
  ResolvedWindow later;
  later.unused = {kSelf};
  sources_.Use(later);
  UseTelling(sources_);
  EXPECT_NE(sources_.Symbols(kSelf).table, nullptr);
  EXPECT_NE(sources_.Sources(kSelf).map, nullptr);
  EXPECT_EQ(store_.counters().symbols_made, made.symbols_made + 1);
  EXPECT_EQ(store_.counters().sources_made, made.sources_made + 1);
}

TEST_F(WindowSourcesTest, ReadSymbolsAgainThatWereDropped) {
  ArtifactStore small({.indexer = indexer_, .workers = workers_}, 1);
  WindowSources sources({.store = small}, kPatient);
  ResolvedWindow window;
  constexpr ObjectId kOther{11};
  window.objects[kSelf] = RefTo("/bin/self", "/proc/self/exe");
  window.objects[kOther] = RefTo("/bin/other", "/proc/self/exe");
  sources.Use(window);
  for (const ObjectId object : {kSelf, kOther, kSelf}) {
    EXPECT_NE(sources.Symbols(object).table, nullptr);
  }
}

// A package of debug information may be published after the program, and a server may be away.
TEST_F(WindowSourcesTest, AskAServerAgainAfterAWhile) {
  TemporaryTree tree;
  FakeClock clock;
  FakeProcesses processes;
  const auto server = *DebuginfodClient::Start(
      {.downloads = {.urls = "http://nowhere", .directory = tree.Path("downloads")},
       .clock = &clock,
       .work = ServeFromTheSecondQuestionOn});
  DebugFiles files({.indexer = indexer_,
                    .files = std::make_shared<DirectForeignFiles>(),
                    .workers = workers_,
                    .clock = clock,
                    .server = server.get()});
  WindowSources sources({.store = store_, .debug_files = &files, .processes = &processes},
                        kPatient);
  const auto answer = [&] {
    ResolvedWindow window;
    window.objects[kStripped] = RefTo("/bin/true", "/bin/true");
    ObjectInfo info = *window.objects[kStripped].info;
    info.build_id = indexer_->Inspect(Open("/proc/self/exe", O_RDONLY)->get())->build_id;
    window.objects[kStripped].info = std::make_shared<ObjectInfo>(std::move(info));
    sources.Use(window);
    return sources.Sources(kStripped);
  };
  ASSERT_TRUE(Eventually([&] { return !answer().is_coming; }));
  EXPECT_EQ(answer().map, nullptr);
  EXPECT_EQ(server->counts().none, 1U);
  EXPECT_TRUE(sources.TakeImproved().empty());
  clock.Advance(DebugFiles::kRetry + 1s);
  EXPECT_TRUE(Eventually([&] { return answer().map != nullptr; }));
  EXPECT_EQ(server->counts().found, 1U);
  EXPECT_EQ(sources.TakeImproved(), std::vector<ObjectId>{kStripped});
  EXPECT_FALSE(answer().is_coming);
}

// To read one takes a process, and most files have no debug information.
TEST_F(WindowSourcesTest, AskForSourceLinesOnlyWhereTheFileMayTellSome) {
  for (const bool may_tell : {false, true}) {
    WindowSources sources({.store = store_}, kPatient);
    ResolvedWindow window = WindowOfObjects();
    ObjectInfo info = *window.objects[kSelf].info;
    info.may_tell_sources = may_tell;
    window.objects[kSelf].info = std::make_shared<ObjectInfo>(std::move(info));
    sources.Use(window);
    EXPECT_EQ(sources.Sources(kSelf).map != nullptr, may_tell);
    EXPECT_EQ(store_.counters().sources_made, may_tell ? 1U : 0U);
  }
}

}  // namespace
}  // namespace pyrometer
