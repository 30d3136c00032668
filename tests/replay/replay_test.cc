// SPDX-License-Identifier: Apache-2.0
// A recorded window and the /proc of its process, through the engine and into profiles, without a
// kernel to ask and without privileges.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "foreign/direct_foreign_files.h"
#include "foreign/in_process_indexer.h"
#include "process/process_history.h"
#include "profile/folded.h"
#include "profile/profile_builder.h"
#include "profiler/indexed_headers.h"
#include "profiler/profiler.h"
#include "symbolize/kernel_symbols.h"
#include "tests/replay/recorded_window.h"
#include "tests/shared/test_paths.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

std::string Slurp(const fs::path& path) {
  return ReadFile(path.string()).value_or("");
}

std::vector<std::string> SortedLines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

void Replace(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
  }
}

class Nowhere : public AddressSpaceSink {
 public:
  bool Publish(const ProcessKey&, ExecId, const ExecPages&,
               std::span<const PublishedMapping>) override {
    return true;
  }
  void Withdraw(Pid) override {}
  void ReleaseWithdrawn() override {}
  void Sweep(std::span<const Pid>) override {}
  std::vector<Pid> TakeMissed() override { return {}; }
};

// The recorded window, once.
class RecordedWindows : public FakeWindows {
 public:
  explicit RecordedWindows(Window window) : window_(std::move(window)) {
    window_.frequency = Hertz{499};
    recorded_.exported = SamplesOf(window_);
  }
  Result<Window> Drain() override { return std::exchange(window_, WindowOf(0)); }
  Accounting accounting() const override { return recorded_; }

 private:
  Window window_;
  Accounting recorded_;
};

// Adds up what it gets, as `record` does.
class Adder : public WindowConsumer {
 public:
  void Consume(const Delivery& delivery) override {
    builder_.Add(*delivery.window);
    missed_ += delivery.missed.TotalLost();
  }
  // REQUIRES: the profiler has been stopped.
  Profile Finish() {
    EXPECT_EQ(missed_, 0U);
    return std::move(builder_).Finish();
  }

 private:
  ProfileBuilder builder_{{.labels = {}}};
  uint64_t missed_ = 0;
};

class Replay : public testing::Test {
 protected:
  // Lays out the recorded tree, with the program that was built here in its place.
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("replay_" + std::to_string(getpid()));
    fs::copy(SourcePath("tests/data/replay"), root_, fs::copy_options::recursive);
    for (const fs::directory_entry& process : fs::directory_iterator(root_ / "proc")) {
      if (process.is_directory()) Furnish(process.path());
    }
    // To read them is all that the replay may need.
    if (geteuid() == 0) {
      ASSERT_EQ(seteuid(kNobody), 0);
    }
  }

  void TearDown() override {
    if (getuid() == 0) {
      EXPECT_EQ(seteuid(0), 0);
    }
    fs::remove_all(root_);
  }

  static void Furnish(const fs::path& process) {
    const fs::path program = process / "root/opt/replayed";
    fs::create_directories(program.parent_path());
    fs::copy_file(BuildPath("tests/replay/replayed"), program);
    fs::create_directory(process / "ns");
    std::ofstream(process / "ns/mnt");
    struct stat status {};
    ASSERT_EQ(stat(program.c_str(), &status), 0);
    std::string maps = Slurp(process / "maps");
    Replace(maps, "DEVICE",
            fmt::format("{:02x}:{:02x}", major(status.st_dev), minor(status.st_dev)));
    Replace(maps, "INODE", std::to_string(status.st_ino));
    std::ofstream(process / "maps", std::ios::trunc) << maps;
  }

  RecordedWindow Recorded() const {
    std::ifstream file(root_ / "window.txt");
    return ReadRecordedWindow(file);
  }

  std::string Expected() const { return Slurp(root_ / "expected.folded"); }

  KernelSymbols RecordedKernel() const {
    const Result<UniqueFd> kallsyms = Open((root_ / "kallsyms").string(), O_RDONLY);
    EXPECT_TRUE(kallsyms.has_value());
    return KernelSymbols::Read(kallsyms->get(), "").value();
  }

  // Through the engine, to two consumers: what each has made of it.
  std::array<Profile, 2> Run() const {
    RecordedWindow recorded = Recorded();
    EXPECT_FALSE(recorded.window.samples.empty());

    const auto indexer = std::make_shared<InProcessIndexer>();
    const Clock clock;
    QuestionThreads workers(clock);
    Nowhere sink;
    ProcessHistory history({.clock = clock,
                            .procfs = {.root = (root_ / "proc").string(), .sys = "/nonexistent"},
                            .inspections = {.patience = std::chrono::minutes(1),
                                            .patience_in_all = std::chrono::minutes(1),
                                            .limit = std::chrono::minutes(1)}},
                           std::make_shared<IndexedHeaders>(indexer), sink);
    EXPECT_TRUE(history.Scan(recorded.tasks).has_value());
    RecordedWindows windows(std::move(recorded.window));
    FakeTableTarget tables;
    FakeCold cold;
    Log log(clock);
    Adder first;
    Adder second;
    Profiler profiler({.windows = windows,
                       .tables = tables,
                       .cold = cold,
                       .processes = history,
                       .indexer = indexer,
                       .question_threads = workers,
                       .files = std::make_shared<DirectForeignFiles>(),
                       .clock = clock,
                       .log = log,
                       .sampler_counters = [] { return SamplerCounters(); },
                       .kernel_symbols = std::nullopt},
                      RecordedKernel(), std::chrono::seconds(10));
    profiler.Attach(first, {.length = std::chrono::seconds(5)});
    profiler.Attach(second, {.length = std::chrono::seconds(10), .aligned = true});
    EXPECT_TRUE(profiler.Start().has_value());
    EXPECT_TRUE(profiler.Stop(After(clock.Now(), std::chrono::seconds(60))));
    EXPECT_EQ(history.counters().unknown_process_samples, 0U);
    return {first.Finish(), second.Finish()};
  }

 private:
  fs::path root_;
};

TEST_F(Replay, NamesTheRecordedStacksAsTheyWereWhenRecorded) {
  for (const Profile& profile : Run()) {
    EXPECT_EQ(SortedLines(EncodeFolded(profile)), SortedLines(Expected()));
  }
}

TEST_F(Replay, GivesEveryRecordedSampleToEveryConsumer) {
  const uint64_t recorded = SamplesOf(Recorded().window);
  EXPECT_GT(recorded, 900U);
  for (const Profile& profile : Run()) {
    uint64_t profiled = 0;
    for (const ProfileSample& sample : profile.samples) profiled += sample.count;
    EXPECT_EQ(profiled, recorded);
    EXPECT_EQ(profile.accounting.exported, recorded);
  }
}

}  // namespace
}  // namespace pyrometer
