// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "binary/debug_file.h"
#include "foreign/direct_foreign_files.h"
#include "foreign/in_process_indexer.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

// Small: whatever the clock of the sources says, its symbols must be read in 5 s.
constexpr auto kAll = ObjectSource::DebugInfo::kIfThere;
constexpr const char* kProgram = "/bin/sh";
constexpr ObjectId kSelf{7};
constexpr ObjectId kGone{8};
constexpr ObjectId kText{9};  // no ELF file
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
  static const ObjectRef self = RefTo("/bin/self", kProgram);
  ResolvedWindow window;
  window.objects[kSelf] = self;
  window.objects[kGone] = RefTo("/bin/gone", nullptr);
  window.objects[kText] = RefTo("/etc/passwd", "/etc/passwd");
  return window;
}

// Can be held up.
class SlowIndexer : public InProcessIndexer {
 public:
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override {
    if (before_reading) before_reading();
    if (options.with_debug_info && before_debug_info) {
      if (Result<void> failed = before_debug_info(); !failed) return failed.error();
    }
    return InProcessIndexer::Symbols(files, options);
  }
  Result<std::optional<PerfMapFunction>> PerfMapLines(int, const PerfMapPart&,
                                                      std::chrono::nanoseconds at_most,
                                                      PerfMapSink) override {
    on_perf_map(at_most);
    return std::nullopt;
  }
  std::function<void()> before_reading;
  std::function<Result<void>()> before_debug_info;
  std::function<void(std::chrono::nanoseconds at_most)> on_perf_map;
};

class WindowSourcesTest : public testing::Test {
 protected:
  // Until what was held up has been read: it uses what held it up.
  void AwaitQuiet() const {
    ASSERT_TRUE(Eventually([this] { return symbols_.pending() == 0; }));
  }
  void Use(WindowSources& sources) {
    ResolvedWindow window = WindowOfObjects();
    sources.Use(window);
  }

  std::shared_ptr<SlowIndexer> indexer_ = std::make_shared<SlowIndexer>();
  FakeClock clock_;  // no window ever waits for too long, unless it is moved
  QuestionThreads workers_{clock_};
  ArtifactStore store_{{.indexer = indexer_, .workers = workers_}, size_t{64} << 20};
  ObjectSymbols symbols_{store_, clock_};
  FakeProcesses processes_;
  TemporaryTree tree_;
  DebugFiles debug_files_{{.processes = processes_,
                           .indexer = indexer_,
                           .files = std::make_shared<DirectForeignFiles>(),
                           .workers = workers_,
                           .clock = clock_,
                           .procfs = tree_.AsProcfs()}};
  const WindowSources::Parts parts_{.store = store_,
                                    .symbols = symbols_,
                                    .debug_info = nullptr,
                                    .indexer = indexer_,
                                    .clock = clock_};
  WindowSources sources_{parts_};
};

TEST_F(WindowSourcesTest, AnswerFromTheWindowAlone) {
  Use(sources_);
  EXPECT_EQ(sources_.Describe(kSelf)->path, "/bin/self");
  EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
  EXPECT_EQ(sources_.Describe(kGone)->path, "/bin/gone");
  EXPECT_EQ(sources_.Symbols(kGone, kAll).reason, Unresolved::kFileGone);
  EXPECT_EQ(sources_.Symbols(kText, kAll).reason, Unresolved::kUnreadable);
  EXPECT_FALSE(sources_.Describe(ObjectId(10)).has_value());
  EXPECT_EQ(sources_.Open(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST_F(WindowSourcesTest, KnowNothingBetweenWindows) {
  Use(sources_);
  sources_.Clear();
  EXPECT_FALSE(sources_.Describe(kSelf).has_value());
  EXPECT_EQ(sources_.Symbols(kSelf, kAll).reason, Unresolved::kFileGone);
  EXPECT_EQ(sources_.Open(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST_F(WindowSourcesTest, ReadNothingOnceItIsTooLate) {
  sources_.GiveUpAt(clock_.Now());
  Use(sources_);
  EXPECT_EQ(sources_.Describe(kSelf)->path, "/bin/self");
  EXPECT_EQ(sources_.Symbols(kSelf, kAll).reason, Unresolved::kNotReady);
  EXPECT_EQ(store_.counters().symbols_made, 0U);
}

TEST_F(WindowSourcesTest, GoOnWithoutSymbolsThatTakeLongerThanAWindowMayWait) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  {
    WindowSources impatient(parts_, {.most_waiting = std::chrono::nanoseconds(0)});
    Use(impatient);
    EXPECT_EQ(impatient.Symbols(kSelf, kAll).reason, Unresolved::kNotReady);
  }
  go_on.count_down();
  AwaitQuiet();
}

TEST_F(WindowSourcesTest, WaitForAllSymbolsOfAWindowTogether) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  constexpr std::chrono::milliseconds kMost(10);
  {
    WindowSources patient(parts_, {.most_waiting = kMost});
    Use(patient);
    std::future<Unresolved> first =
        std::async(std::launch::async, [&] { return patient.Symbols(kSelf, kAll).reason; });
    while (first.wait_for(kMost) != std::future_status::ready) clock_.Advance(kMost);
    EXPECT_EQ(first.get(), Unresolved::kNotReady);
    // By a clock that stands still it would wait for ever, had it time of its own.
    EXPECT_EQ(patient.Symbols(kText, kAll).reason, Unresolved::kNotReady);
  }
  go_on.count_down();
  AwaitQuiet();
}

TEST_F(WindowSourcesTest, WaitForNoSymbolsBeyondTheEndOfTheirTime) {
  constexpr std::chrono::seconds kTime(1);
  // So large that whoever reads it has a minute, by the machine's clock.
  const UniqueFd large(::memfd_create("large", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(large.get(), off_t{4} << 30), 0);
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  WindowSources patient(parts_, {.most_waiting = std::chrono::hours(1)});
  ResolvedWindow window;
  window.objects[kSelf] =
      RefTo("/bin/large", ("/proc/self/fd/" + std::to_string(large.get())).c_str());
  patient.Use(window);
  patient.GiveUpAt(After(clock_.Now(), kTime));
  std::future<Unresolved> asked =
      std::async(std::launch::async, [&] { return patient.Symbols(kSelf, kAll).reason; });
  clock_.Advance(kTime);
  EXPECT_EQ(asked.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  go_on.count_down();
  EXPECT_EQ(asked.get(), Unresolved::kNotReady);
  AwaitQuiet();
}

TEST_F(WindowSourcesTest, HaveInALaterWindowWhatWasLate) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  Use(sources_);
  sources_.GiveUpAt(clock_.Now());
  EXPECT_EQ(sources_.Symbols(kSelf, kAll).reason, Unresolved::kNotReady);
  go_on.count_down();
  sources_.GiveUpAt(MonotonicTime(UINT64_MAX));
  Use(sources_);
  EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
}

// More files may be in use than are held open.
TEST_F(WindowSourcesTest, HaveSymbolsThatWereReadWhileTheFileWasHeld) {
  for (const bool has_build_id : {true, false}) {
    ObjectRef self = RefTo("/bin/self", kProgram);
    if (has_build_id) self.info = WithBuildId(*self.info);
    const auto use = [&] {
      ResolvedWindow window;
      window.objects[kSelf] = self;
      sources_.Use(window);
    };
    use();
    EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
    self.file = nullptr;
    use();
    EXPECT_EQ(sources_.Symbols(kSelf, kAll).table != nullptr, has_build_id)
        << "it may have been overwritten";
  }
}

TEST_F(WindowSourcesTest, ReadPerfMapsForABoundedTime) {
  std::vector<int64_t> granted;  // seconds
  indexer_->on_perf_map = [&](std::chrono::nanoseconds at_most) {
    granted.push_back(at_most / std::chrono::seconds(1));
    clock_.Advance(at_most);
  };
  const auto read = [this] {
    return sources_.Read(-1, {.end = 100}, [](const PerfMapLines&) {}).has_value();
  };
  for (int window = 0; window < 2; ++window) {
    Use(sources_);
    EXPECT_TRUE(read() && read() && read());
    EXPECT_FALSE(read());
  }
  EXPECT_THAT(granted, testing::ElementsAre(2, 2, 1, 2, 2, 1));
  Use(sources_);
  sources_.GiveUpAt(After(clock_.Now(), std::chrono::seconds(1)));
  EXPECT_TRUE(read());
  EXPECT_FALSE(read());
  EXPECT_EQ(granted.back(), 1);
}

// The test's own program has debug information.
class WindowDebugInfoTest : public WindowSourcesTest {
 protected:
  WindowSources Make(std::chrono::nanoseconds most_waiting = std::chrono::hours(1)) {
    WindowSources::Parts parts = parts_;
    parts.debug_info = &debug_info_;
    return {parts, {.most_waiting_for_sources = most_waiting}};
  }
  static void Use(WindowSources& sources) {
    static const ObjectRef self = RefTo("/bin/self", "/proc/self/exe");
    ResolvedWindow window;
    window.objects[kSelf] = self;
    sources.Use(window);
  }
  static bool HasSources(const SymbolAnswer& answer) {
    return answer.table != nullptr && answer.table->layout().sources > 0;
  }

  ObjectSymbols debug_info_{store_, clock_, debug_files_};
};

TEST_F(WindowDebugInfoTest, IsReadWhereAProgramHasIt) {
  WindowSources sources = Make();
  Use(sources);
  const SymbolAnswer answer = sources.Symbols(kSelf, kAll);
  EXPECT_TRUE(HasSources(answer));
  EXPECT_EQ(answer.better_after, 0U);
}

TEST_F(WindowDebugInfoTest, ComesInALaterWindowIfItTakesLong) {
  std::latch go_on(1);
  indexer_->before_debug_info = [&]() -> Result<void> {
    go_on.wait();
    return {};
  };
  WindowSources sources = Make(std::chrono::nanoseconds(0));
  Use(sources);
  const SymbolAnswer first = sources.Symbols(kSelf, kAll);
  EXPECT_NE(first.table, nullptr);
  EXPECT_FALSE(HasSources(first));
  EXPECT_EQ(first.better_after, 1U);
  EXPECT_EQ(sources.without_debug_info(), 1U);
  go_on.count_down();
  ASSERT_TRUE(Eventually([&] {
    Use(sources);
    return HasSources(sources.Symbols(kSelf, kAll));
  }));
  EXPECT_EQ(sources.without_debug_info(), 0U);
  EXPECT_EQ(store_.counters().symbols_made, 2U);
}

// As in a recording, before its only window is named.
TEST_F(WindowDebugInfoTest, IsWaitedForOnceWhoeverAskedForIt) {
  std::latch go_on(1);
  std::latch is_asked(1);
  indexer_->before_debug_info = [&]() -> Result<void> {
    is_asked.count_down();
    go_on.wait();
    return {};
  };
  WindowSources sources = Make();
  Use(sources);
  const SampledObject self{kSelf, RefTo("/bin/self", "/proc/self/exe")};
  debug_info_.ReadAhead(std::span(&self, 1));
  is_asked.wait();
  ResolvedWindow window;
  window.objects[kSelf] = self.object;
  sources.Use(window);
  std::future<bool> asked =
      std::async(std::launch::async, [&] { return HasSources(sources.Symbols(kSelf, kAll)); });
  go_on.count_down();
  EXPECT_TRUE(asked.get());
}

TEST_F(WindowDebugInfoTest, IsNotWaitedForTwice) {
  std::latch go_on(1);
  indexer_->before_debug_info = [&]() -> Result<void> {
    go_on.wait();
    return {};
  };
  constexpr std::chrono::milliseconds kMost(10);
  WindowSources sources = Make(kMost);
  Use(sources);
  std::future<uint32_t> first =
      std::async(std::launch::async, [&] { return sources.Symbols(kSelf, kAll).better_after; });
  while (first.wait_for(kMost) != std::future_status::ready) clock_.Advance(kMost);
  EXPECT_EQ(first.get(), 1U);
  Use(sources);
  // By a clock that stands still it would wait for ever.
  EXPECT_EQ(sources.Symbols(kSelf, kAll).better_after, 1U);
  go_on.count_down();
  ASSERT_TRUE(Eventually([this] { return debug_info_.pending() == 0; }));
}

TEST_F(WindowDebugInfoTest, IsAskedForAgainOnlyIfThatMayHelp) {
  for (const auto& [code, later] :
       {std::pair(ErrorCode::kIo, WindowSources::kRetryWindows),
        std::pair(ErrorCode::kMalformed, 0U),
        std::pair(ErrorCode::kExhausted, WindowSources::kRetryWindows)}) {
    indexer_->before_debug_info = [code = code]() -> Result<void> { return Fail(code, "not now"); };
    debug_info_.Forget(std::array{kSelf});
    WindowSources sources = Make();
    Use(sources);
    const SymbolAnswer answer = sources.Symbols(kSelf, kAll);
    EXPECT_NE(answer.table, nullptr);
    EXPECT_FALSE(HasSources(answer));
    EXPECT_EQ(answer.better_after, later);
  }
}

TEST_F(WindowDebugInfoTest, MayBeInADebugFile) {
  ObjectRef stripped = RefTo("/usr/lib/lines.so", FixturePath("lines_stripped.so").c_str());
  const BuildId build_id = indexer_->Inspect(stripped.file->get())->build_id;
  {
    ObjectInfo info = *stripped.info;
    info.build_id = build_id;
    stripped.info = std::make_shared<ObjectInfo>(std::move(info));
  }
  const auto ask = [&](WindowSources& sources) {
    ResolvedWindow window;
    window.objects[kSelf] = stripped;
    sources.Use(window);
    return sources.Symbols(kSelf, kAll);
  };
  WindowSources sources = Make();
  const SymbolAnswer without = ask(sources);
  ASSERT_NE(without.table, nullptr);
  EXPECT_FALSE(HasSources(without));
  EXPECT_EQ(without.better_after, WindowSources::kRetryWindows) << "it may be installed later";
  EXPECT_EQ(sources.without_debug_info(), 0U);
  EXPECT_EQ(debug_info_.counters().absent, 1U);

  tree_.File("proc/1/root" + DebugFilePath(build_id), *ReadFile(FixturePath("lines.debug")));
  clock_.Advance(DebugFiles::kRetry);
  const SymbolAnswer with = ask(sources);
  EXPECT_TRUE(HasSources(with));
  EXPECT_EQ(with.better_after, 0U);
}

TEST_F(WindowDebugInfoTest, IsNotReadIfThatIsNotWanted) {
  Use(sources_);
  const SymbolAnswer answer = sources_.Symbols(kSelf, kAll);
  EXPECT_GT(answer.table->unread_debug_info(), 0U);
  EXPECT_EQ(answer.table->layout().sources, 0U);
  EXPECT_EQ(answer.better_after, 0U);
}

TEST_F(WindowSourcesTest, ForgetObjectsThatNobodyHasMapped) {
  Use(sources_);
  EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
  Use(sources_);
  EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
  const uint64_t made = store_.counters().symbols_made;
  sources_.Clear();
  ResolvedWindow later;
  later.unused = {kSelf};
  sources_.Use(later);
  Use(sources_);
  EXPECT_NE(sources_.Symbols(kSelf, kAll).table, nullptr);
  EXPECT_EQ(store_.counters().symbols_made, made + 1);
}

TEST_F(WindowSourcesTest, ReadSymbolsAgainThatWereDropped) {
  ArtifactStore small({.indexer = indexer_, .workers = workers_}, 1);
  ObjectSymbols symbols(small, clock_);
  WindowSources sources({.store = small,
                         .symbols = symbols,
                         .debug_info = nullptr,
                         .indexer = indexer_,
                         .clock = clock_});
  ResolvedWindow window;
  constexpr ObjectId kOther{11};
  window.objects[kSelf] = RefTo("/bin/self", kProgram);
  window.objects[kOther] = RefTo("/bin/other", kProgram);
  sources.Use(window);
  for (const ObjectId object : {kSelf, kOther, kSelf}) {
    EXPECT_NE(sources.Symbols(object, kAll).table, nullptr);
  }
}

}  // namespace
}  // namespace pyrometer
