// SPDX-License-Identifier: Apache-2.0
// A recorded window and the /proc of its process, through process, symbolize and profile, without
// a kernel to ask and without privileges.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "indexer/in_process_indexer.h"
#include "process/process_history.h"
#include "profile/folded.h"
#include "profile/profile_builder.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/symbolizer.h"
#include "tests/replay/recorded_window.h"

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

class Headers : public ObjectInspector {
 public:
  explicit Headers(Indexer& indexer) : indexer_(indexer) {}
  Result<ObjectFacts> Inspect(int fd) override { return indexer_.Inspect(fd); }

 private:
  Indexer& indexer_;
};

class Nowhere : public AddressSpaceSink {
 public:
  void Publish(const ProcessKey&, ExecId, uint64_t, std::span<const PublishedMapping>) override {}
  void Withdraw(Pid) override {}
  void ReleaseWithdrawn() override {}
};

class HistoryObjects : public ObjectSource {
 public:
  HistoryObjects(ProcessHistory& history, Indexer& indexer)
      : history_(history), indexer_(indexer) {}
  std::optional<ObjectDescription> Describe(ObjectId id) override {
    const std::optional<ObjectInfo> info = history_.Object(id);
    if (!info) return std::nullopt;
    return ObjectDescription{info->path, info->build_id, info->segments, info->is_vdso};
  }
  Result<SymbolTable> Symbols(ObjectId id) override {
    ASSIGN_OR_RETURN(const UniqueFd file, history_.OpenObject(id));
    return indexer_.Symbols(file.get());
  }

 private:
  ProcessHistory& history_;
  Indexer& indexer_;
};

class NoPerfMaps : public PerfMapSource {
 public:
  Result<UniqueFd> Open(ProcessKey) override { return Fail(ErrorCode::kNotFound, "none"); }
};

class Replay : public testing::Test {
 protected:
  // Lays out the recorded tree, with the program that was built here in its place.
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("replay_" + std::to_string(getpid()));
    fs::copy(REPLAY_DATA, root_, fs::copy_options::recursive);
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
    fs::copy_file(REPLAYED_PROGRAM, program);
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

  Profile Run() const {
    RecordedWindow recorded = Recorded();
    EXPECT_FALSE(recorded.window.samples.empty());
    recorded.window.frequency = Hertz{499};

    InProcessIndexer indexer;
    Headers headers(indexer);
    Nowhere sink;
    ProcessHistory history({.procfs = {.root = (root_ / "proc").string(), .sys = "/nonexistent"}},
                           headers, sink);
    EXPECT_TRUE(history.Scan(recorded.tasks).has_value());
    HistoryObjects objects(history, indexer);
    NoPerfMaps perf_maps;
    const Result<UniqueFd> kallsyms = Open((root_ / "kallsyms").string(), O_RDONLY);
    EXPECT_TRUE(kallsyms.has_value());
    Result<KernelSymbols> kernel = KernelSymbols::Read(kallsyms->get(), "");
    EXPECT_TRUE(kernel.has_value());
    Symbolizer symbolizer(objects, perf_maps, *std::move(kernel), {});
    ProfileBuilder builder({.labels = {}});
    builder.Add(symbolizer.Name(history.Resolve(std::move(recorded.window))));
    EXPECT_EQ(history.counters().unknown_process_samples, 0U);
    return std::move(builder).Finish();
  }

 private:
  fs::path root_;
};

TEST_F(Replay, NamesTheRecordedStacksAsTheyWereWhenRecorded) {
  const Profile profile = Run();
  EXPECT_EQ(SortedLines(EncodeFolded(profile)), SortedLines(Expected()));
}

TEST_F(Replay, KeepsEveryRecordedSample) {
  const RecordedWindow window = Recorded();
  uint64_t recorded = 0;
  for (const Sample& sample : window.window.samples) recorded += sample.count;
  uint64_t profiled = 0;
  for (const ProfileSample& sample : Run().samples) profiled += sample.count;
  EXPECT_EQ(profiled, recorded);
  EXPECT_GT(recorded, 900U);
}

}  // namespace
}  // namespace pyrometer
