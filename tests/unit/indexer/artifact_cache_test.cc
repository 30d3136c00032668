// SPDX-License-Identifier: Apache-2.0
#include "indexer/artifact_cache.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/unit/base/file_size_limit.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/indexer/made_up_sources.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;
using Counters = ArtifactCache::Counters;

BuildId Id(std::string_view bytes) {
  return BuildId(std::as_bytes(std::span(bytes)));
}

class ArtifactCacheTest : public testing::Test {
 protected:
  static ArtifactCache::Options Small() {
    return {.left_on_disk = 0, .min_artifact = 0, .maker = Id("maker")};
  }
  std::shared_ptr<ArtifactCache> Open(ArtifactCache::Options options = Small()) {
    options.directory = tree_.Path("cache");
    Result<std::shared_ptr<ArtifactCache>> cache = ArtifactCache::Open(std::move(options));
    EXPECT_TRUE(cache.has_value()) << cache.error().message();
    return *cache;
  }
  static void Store(ArtifactCache& cache, std::string_view content, const BuildId& id) {
    const UniqueFd file = FileWith(content);
    const Made<SourceMap> made = ReadMadeUpSources(file.get());
    cache.StoreSources(id, made.reading, made.value);
  }
  // What the cache has for a file of this content; "-" for nothing.
  static std::string Find(ArtifactCache& cache, std::string_view content, const BuildId& id) {
    const std::optional<Made<SourceMap>> found = Look(cache, content, id);
    return found ? NameIn(found->value) : "-";
  }
  static std::optional<Made<SourceMap>> Look(ArtifactCache& cache, std::string_view content,
                                             const BuildId& id) {
    const UniqueFd file = FileWith(content);
    return cache.FindSources(id, [&file](const Reading& reading) {
      return Repeats(reading, std::array{*FileBytes(file.get())});
    });
  }
  std::vector<fs::path> Files() const {
    return {fs::directory_iterator(tree_.Path("cache/symbols")), fs::directory_iterator()};
  }
  fs::path OnlyFile() const {
    const std::vector<fs::path> files = Files();
    EXPECT_EQ(files.size(), 1U);
    return files.empty() ? fs::path() : files.front();
  }
  // A file of this name with these bytes, as the cache writes them.
  static void Put(const fs::path& path, std::string_view bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    ASSERT_TRUE(WriteAll(fd.get(), bytes).has_value()) << path;
  }
  // `seconds` from now on, less a minute.
  static void SetUsed(const fs::path& path, int seconds) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(1) +
                                  std::chrono::seconds(seconds));
  }
  // With the only file as `change` makes it, there is nothing to be found, and then no such file.
  template <typename Change>
  void ExpectRefusal(Change change, std::string_view what) {
    const auto cache = Open();
    change(OnlyFile());
    EXPECT_EQ(Find(*cache, "one", kId), "-") << what;
    EXPECT_EQ(cache->counters().refused, 1U) << what;
    EXPECT_TRUE(Files().empty()) << what;
  }

  const BuildId kId = Id("0123");
  TemporaryTree tree_;
};

TEST_F(ArtifactCacheTest, HasForALaterRunWhatThisOneHasMade) {
  const auto first = Open();
  EXPECT_EQ(Find(*first, "one", kId), "-");
  Store(*first, "one", kId);
  EXPECT_EQ(first->counters().misses, 1U);
  EXPECT_EQ(first->counters().stored, 1U);
  EXPECT_EQ(first->counters().bytes, fs::file_size(OnlyFile()));
  const auto second = Open();
  EXPECT_EQ(Find(*second, "one", kId), "one");
  EXPECT_EQ(Find(*second, "one", Id("other")), "-");
  EXPECT_EQ(second->counters().hits, 1U);
  EXPECT_EQ(second->counters().misses, 1U);
  EXPECT_EQ(second->counters().bytes, fs::file_size(OnlyFile()));
}

TEST_F(ArtifactCacheTest, LetsOnlyThisUserSeeAnything) {
  Store(*Open(), "one", kId);
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(mode(tree_.Path("cache")), fs::perms::owner_all);
  EXPECT_EQ(mode(tree_.Path("cache/symbols")), fs::perms::owner_all);
  EXPECT_EQ(mode(OnlyFile()), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ArtifactCacheTest, LetsNobodyWithAForgedBuildIdChangeAnothersNames) {
  const auto cache = Open();
  Store(*cache, "bad", kId);
  EXPECT_EQ(Find(*cache, "one", kId), "-");
  EXPECT_EQ(Find(*cache, "larger", kId), "-");
  Store(*cache, "one", kId);
  EXPECT_EQ(Find(*cache, "one", kId), "one");
  EXPECT_EQ(Find(*cache, "bad", kId), "bad");
  EXPECT_EQ(cache->counters().refused, 0U);
}

TEST_F(ArtifactCacheTest, BelievesNoFileThatWasCut) {
  Store(*Open(), "one", kId);
  const fs::path path = OnlyFile();
  const std::string whole = *ReadFile(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    Put(path, whole.substr(0, size));
    ExpectRefusal([](const fs::path&) {}, std::to_string(size));
  }
}

TEST_F(ArtifactCacheTest, BelievesNoFileOfWhichAByteWasChanged) {
  Store(*Open(), "one", kId);
  const fs::path path = OnlyFile();
  const std::string whole = *ReadFile(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char with : {'\x01', '\xff'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ with);
      Put(path, changed);
      ExpectRefusal([](const fs::path&) {}, std::to_string(at));
    }
  }
  Put(path, whole + '\0');
  ExpectRefusal([](const fs::path&) {}, "a byte more");
}

TEST_F(ArtifactCacheTest, MakesAgainWhatAnotherBuildOfThisProgramHasMade) {
  ArtifactCache::Options older = Small();
  older.maker = Id("older");
  Store(*Open(older), "one", kId);
  ExpectRefusal([](const fs::path&) {}, "of another maker");
}

TEST_F(ArtifactCacheTest, BelievesNoFileThatIsNotItsOwn) {
  const auto store = [this] { Store(*Open(), "one", kId); };
  store();
  ExpectRefusal([](const fs::path& path) { EXPECT_EQ(::chmod(path.c_str(), 0644), 0); },
                "others may open it");
  store();
  ExpectRefusal(
      [&](const fs::path& path) {
        fs::rename(path, tree_.Path("elsewhere"));
        fs::create_symlink(tree_.Path("elsewhere"), path);
      },
      "a link");
  store();
  ExpectRefusal(
      [](const fs::path& path) {
        fs::remove(path);
        EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
      },
      "a FIFO, at which opening would wait");
  Store(*Open(), "one", Id("other"));
  ExpectRefusal(
      [](const fs::path& path) { fs::rename(path, path.parent_path() / "30313233-0.sources"); },
      "made of a file with another build id");
  if (::geteuid() != 0) return;
  store();
  ExpectRefusal([](const fs::path& path) { EXPECT_EQ(::chown(path.c_str(), 65534, 65534), 0); },
                "another user's");
}

TEST_F(ArtifactCacheTest, DoesNotOpenInADirectoryThatOthersHave) {
  const auto expect_refusal = [this](const char* what) {
    const auto cache = ArtifactCache::Open({.directory = tree_.Path("cache")});
    ASSERT_FALSE(cache.has_value()) << what;
    EXPECT_EQ(cache.error().code(), ErrorCode::kPermission) << cache.error().message();
  };
  const std::string inner = tree_.Path("cache/symbols");
  Open();
  ASSERT_EQ(::chmod(inner.c_str(), 0750), 0);
  expect_refusal("others may open it");
  fs::remove(inner);
  tree_.Directory("elsewhere");
  fs::create_symlink(tree_.Path("elsewhere"), inner);
  expect_refusal("a link");
  fs::remove_all(tree_.Path("cache"));
  fs::create_symlink(tree_.Path("elsewhere"), tree_.Path("cache"));
  expect_refusal("the outer one is a link");
  fs::remove(tree_.Path("cache"));
  tree_.File("cache", "a file");
  expect_refusal("no directory");
  fs::remove(tree_.Path("cache"));
  if (::geteuid() != 0) return;
  for (const std::string& path : {inner, tree_.Path("cache")}) {
    Open();
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    expect_refusal("another user's");
    fs::remove_all(tree_.Path("cache"));
  }
}

TEST_F(ArtifactCacheTest, StoresNothingOnAFullDisk) {
  const auto cache = Open();
  {
    const FileSizeLimit full(150);
    Store(*cache, "one", kId);
  }
  EXPECT_EQ(cache->counters().not_stored, 1U);
  EXPECT_TRUE(Files().empty());
  ArtifactCache::Options careful = Small();
  careful.left_on_disk = UINT64_MAX / 2;
  const auto leaves_room = Open(careful);
  Store(*leaves_room, "one", kId);
  EXPECT_EQ(leaves_room->counters().not_stored, 1U);
  EXPECT_TRUE(Files().empty());
}

TEST_F(ArtifactCacheTest, StoresNothingThatIsMadeAsFast) {
  ArtifactCache::Options options = Small();
  options.min_artifact = 64 << 10;
  const auto cache = Open(options);
  Store(*cache, "one", kId);
  EXPECT_EQ(cache->counters().stored + cache->counters().not_stored, 0U);
  EXPECT_TRUE(Files().empty());
}

TEST_F(ArtifactCacheTest, RemovesWhatWasUsedLeastRecentlyWhenThereIsNoRoom) {
  Store(*Open(), "0", Id("0"));
  ArtifactCache::Options options = Small();
  options.max_size = 4 * fs::file_size(OnlyFile());
  const auto cache = Open(options);
  for (const char* id : {"1", "2", "3"}) Store(*cache, id, Id(id));
  EXPECT_EQ(cache->counters().evicted, 0U);
  for (const fs::path& path : Files()) SetUsed(path, path.filename().string()[1] - '0');
  EXPECT_EQ(Find(*cache, "0", Id("0")), "0") << "which is now the one used last";
  Store(*cache, "4", Id("4"));
  EXPECT_EQ(cache->counters().evicted, 1U);
  EXPECT_EQ(Files().size(), 4U);
  EXPECT_EQ(Find(*cache, "1", Id("1")), "-");
  for (const char* id : {"0", "2", "3", "4"}) EXPECT_EQ(Find(*cache, id, Id(id)), id);
  EXPECT_EQ(cache->counters().bytes, options.max_size);
}

TEST_F(ArtifactCacheTest, RemovesWhatIsTooMuchForASmallerSize) {
  Store(*Open(), "0", Id("0"));
  ArtifactCache::Options options = Small();
  options.max_size = fs::file_size(OnlyFile()) - 1;
  const auto cache = Open(options);
  EXPECT_TRUE(Files().empty());
  EXPECT_EQ(cache->counters().evicted, 1U);
  Store(*cache, "0", Id("0"));
  EXPECT_EQ(cache->counters().not_stored, 1U) << "one may not take more than a quarter";
}

TEST_F(ArtifactCacheTest, LeavesFilesOfOthersAlone) {
  Open();
  tree_.File("cache/other", "x");
  tree_.File("cache/symbols/other", std::string(1000, 'x'));
  ArtifactCache::Options options = Small();
  options.max_size = 0;
  EXPECT_EQ(Open(options)->counters().bytes, 0U);
  EXPECT_EQ(Files().size(), 1U);
}

TEST_F(ArtifactCacheTest, KeepsACoupleOfContentsOfABuildId) {
  const auto cache = Open();
  for (size_t i = 0; i < ArtifactCache::kMostOfOneBuildId; ++i) {
    Store(*cache, std::to_string(i), kId);
  }
  const std::vector<fs::path> files = Files();
  EXPECT_EQ(files.size(), ArtifactCache::kMostOfOneBuildId);
  for (const fs::path& path : files) SetUsed(path, path.stem().string().back() == '5' ? 0 : 30);
  Store(*cache, "x", kId);
  EXPECT_EQ(Files().size(), ArtifactCache::kMostOfOneBuildId);
  EXPECT_EQ(Find(*cache, "5", kId), "-");
  EXPECT_EQ(Find(*cache, "x", kId), "x");
}

TEST_F(ArtifactCacheTest, SharesItsDirectoryWithOtherProcesses) {
  const auto one = Open();
  Store(*one, "0", Id("0"));
  ArtifactCache::Options options = Small();
  options.max_size = 4 * fs::file_size(OnlyFile());
  const auto other = Open(options);
  const std::optional<Made<SourceMap>> in_use = Look(*one, "0", Id("0"));
  SetUsed(OnlyFile(), 0);
  for (const char* id : {"1", "2", "3", "4"}) Store(*other, id, Id(id));
  EXPECT_EQ(Find(*other, "0", Id("0")), "-") << "it was removed";
  ASSERT_TRUE(in_use.has_value());
  EXPECT_EQ(NameIn(in_use->value), "0") << "who had it open still has it";
  EXPECT_EQ(Find(*one, "4", Id("4")), "4");
}

TEST_F(ArtifactCacheTest, RemovesWhatWritersLeftButNotWhatTheyWrite) {
  Open();
  tree_.File("cache/symbols/unfinished-1", "left");
  tree_.File("cache/symbols/unfinished-2", "being written");
  const UniqueFd writer = *::pyrometer::Open(tree_.Path("cache/symbols/unfinished-2"), O_RDONLY);
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  Open();
  EXPECT_EQ(OnlyFile().filename(), "unfinished-2");
}

TEST_F(ArtifactCacheTest, LosesNamesAndNoMoreWhenAFileInUseIsCut) {
  const auto cache = Open();
  Store(*cache, "one", kId);
  const std::optional<Made<SourceMap>> found = Look(*cache, "one", kId);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(::truncate(OnlyFile().c_str(), 0), 0);
  EXPECT_EQ(NameIn(found->value), "-");
}

TEST_F(ArtifactCacheTest, HasNoMoreFilesOpenThanItMay) {
  ArtifactCache::Options options = Small();
  options.max_open = 1;
  const auto cache = Open(options);
  Store(*cache, "one", kId);
  std::optional<Made<SourceMap>> first = Look(*cache, "one", kId);
  EXPECT_EQ(cache->counters().open, 1U);
  EXPECT_EQ(Find(*cache, "one", kId), "-");
  first.reset();
  EXPECT_EQ(cache->counters().open, 0U);
  EXPECT_EQ(Find(*cache, "one", kId), "one");
}

TEST_F(ArtifactCacheTest, NamesNothingWrongWhereManyWriteAndRemoveAtOnce) {
  Store(*Open(), "0", Id("0"));
  ArtifactCache::Options options = Small();
  options.max_size = 6 * fs::file_size(OnlyFile());
  const std::array caches = {Open(options), Open(options)};
  const auto work = [&caches](unsigned seed) {
    for (unsigned i = 0; i < 300; ++i) {
      ArtifactCache& cache = *caches[(seed + i) % caches.size()];
      const std::string content = std::to_string((i * (seed + 1)) % 9);
      const BuildId id = Id(i % 2 == 0 ? "even" : "odd");
      const std::string found = Find(cache, content, id);
      EXPECT_TRUE(found == "-" || found == content) << found;
      if (found == "-") Store(cache, content, id);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  }
  for (const auto& cache : caches) EXPECT_EQ(cache->counters().refused, 0U);
  EXPECT_GT(caches[0]->counters().hits + caches[1]->counters().hits, 0U);
}

TEST(OwnBuildId, IsThatOfThisProgram) {
  EXPECT_FALSE(OwnBuildId().empty());
  EXPECT_FALSE(ArtifactCache::Open({.directory = "/nonexistent", .maker = {}}).has_value());
}

}  // namespace
}  // namespace pyrometer
