// SPDX-License-Identifier: Apache-2.0
#include "profiler/object_symbols.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "foreign/in_process_indexer.h"
#include "foreign/reading_budget.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

constexpr ObjectId kShell{7};
constexpr ObjectId kPasswords{9};  // no ELF file
constexpr MonotonicTime kForEver{UINT64_MAX};

SampledObject Of(ObjectId id, const char* path = "/bin/sh") {
  ObjectInfo info;
  info.path = path;
  return {id,
          {std::make_shared<ObjectInfo>(std::move(info)),
           std::make_shared<const UniqueFd>(*Open(path, O_RDONLY))}};
}

// Can be held up, and fail.
class CountingIndexer : public InProcessIndexer {
 public:
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override {
    ++asked;
    if (before_reading) before_reading();
    if (fails) return Fail(ErrorCode::kIo, "not now");
    return InProcessIndexer::Symbols(files, options);
  }
  std::atomic<int> asked = 0;
  std::atomic<bool> fails = false;
  std::function<void()> before_reading;
};

class ObjectSymbolsTest : public testing::Test {
 protected:
  bool IsNamed(const ObjectSymbols::Answer& answer) {
    return answer && *answer && store_.SymbolsOf(**answer) != nullptr;
  }

  static std::vector<SampledObject> Many(size_t count) {
    std::vector<SampledObject> many;
    for (uint32_t i = 0; i < count; ++i) many.push_back(Of(ObjectId(100 + i)));
    return many;
  }
  // Until nothing is read any more, nor will be.
  void AwaitQuiet() const {
    ASSERT_TRUE(Eventually([this] { return symbols_.pending() == 0; }));
  }

  const SampledObject shell_ = Of(kShell);
  std::shared_ptr<CountingIndexer> indexer_ = std::make_shared<CountingIndexer>();
  FakeClock clock_;
  QuestionThreads workers_{clock_};
  ArtifactStore store_{{.indexer = indexer_, .workers = workers_}, size_t{64} << 20};
  ObjectSymbols symbols_{store_, clock_};
};

TEST_F(ObjectSymbolsTest, AreReadAheadOnce) {
  symbols_.ReadAhead(std::span(&shell_, 1));
  EXPECT_TRUE(IsNamed(symbols_.Await(shell_, kForEver)));
  symbols_.ReadAhead(std::span(&shell_, 1));
  symbols_.ReadForWindow({shell_});
  EXPECT_TRUE(IsNamed(symbols_.Find(shell_)));
  EXPECT_EQ(indexer_->asked, 1);
  EXPECT_EQ(symbols_.counters().read_ahead, 1U);
}

TEST_F(ObjectSymbolsTest, AreToldOfWhoeverAskedForThem) {
  std::atomic<int> told = 0;
  ObjectSymbols symbols(
      store_, clock_, [&](const SampledObject& object, const ArtifactStore::ContentRef& content) {
        told += object.object.file != nullptr && store_.SymbolsOf(content) ? 1 : 0;
      });
  const SampledObject other = Of(ObjectId(8));
  const SampledObject passwords = Of(kPasswords, "/etc/passwd");
  symbols.ReadAhead(std::span(&shell_, 1));
  EXPECT_TRUE(IsNamed(symbols.Await(other, kForEver)));
  EXPECT_TRUE(IsNamed(symbols.Await(shell_, kForEver)));
  EXPECT_FALSE(IsNamed(symbols.Await(passwords, kForEver)));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(symbols.counters().read, 2U);
  EXPECT_EQ(symbols.counters().failed, 1U);
}

TEST_F(ObjectSymbolsTest, AreReadWhenAWindowAsks) {
  EXPECT_FALSE(symbols_.Find(shell_));
  EXPECT_TRUE(IsNamed(symbols_.Await(shell_, kForEver)));
  EXPECT_EQ(symbols_.counters().read_ahead, 0U);
}

TEST_F(ObjectSymbolsTest, AreNotThoseOfAnEarlierObjectWithThatId) {
  symbols_.Await(shell_, kForEver);
  const SampledObject later = Of(kShell);
  EXPECT_FALSE(symbols_.Find(later));
  EXPECT_TRUE(IsNamed(symbols_.Await(later, kForEver)));
  EXPECT_EQ(indexer_->asked, 2);
}

TEST_F(ObjectSymbolsTest, DoNotWaitForThoseOfAnotherUserOnTheSameDevice) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  const TemporaryTree tree;
  for (const char* name : {"of one", "of another"})
    std::filesystem::copy("/bin/sh", tree.Path(name));
  ASSERT_EQ(::chown(tree.Path("of one").c_str(), 4711, 4711), 0);
  ASSERT_EQ(::chown(tree.Path("of another").c_str(), 4712, 4712), 0);
  const SampledObject of_one = Of(ObjectId(1), tree.Path("of one").c_str());
  const SampledObject of_another = Of(ObjectId(2), tree.Path("of another").c_str());
  const auto go_on = std::make_shared<std::latch>(1);  // who waits may outlive the test
  const uint64_t account = AccountOf(of_one.object.file->get());
  const auto post = [&] {
    return workers_.Post(
        account, std::chrono::seconds(1), [go_on] { go_on->wait(); }, nullptr);
  };
  for (size_t i = 0; i < QuestionThreads::Options().per_file_system; ++i) ASSERT_TRUE(post());
  ASSERT_TRUE(Eventually([this] { return workers_.counters().waiting == 0; }));
  while (post()) {
  }
  symbols_.ReadForWindow({of_one, of_another});
  EXPECT_TRUE(IsNamed(symbols_.Await(of_another, kForEver)));
  EXPECT_EQ(symbols_.Await(of_one, kForEver)->error().code(), ErrorCode::kIo) << "refused";
  go_on->count_down();
}

// The file may come, or its reader may have had bad luck.
TEST_F(ObjectSymbolsTest, AreTriedAgainForTheNextWindowIfThatMayHelp) {
  indexer_->fails = true;
  const std::vector<SampledObject> sampled = {shell_, Of(kPasswords, "/etc/passwd")};
  symbols_.ReadAhead(sampled);
  for (const SampledObject& object : sampled) {
    EXPECT_FALSE(symbols_.Await(object, kForEver)->has_value());
  }
  indexer_->fails = false;
  symbols_.ReadForWindow(sampled);
  EXPECT_TRUE(IsNamed(symbols_.Await(sampled[0], kForEver)));
  EXPECT_EQ(symbols_.Await(sampled[1], kForEver)->error().code(), ErrorCode::kInvalid);
  const int asked = indexer_->asked;
  symbols_.ReadForWindow(sampled);
  symbols_.Await(sampled[1], kForEver);
  EXPECT_EQ(indexer_->asked, asked) << "it stays no ELF file";
}

TEST_F(ObjectSymbolsTest, AreReadForAWindowBeforeWhatWasSampled) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  const std::vector<SampledObject> sampled = Many(2 * ObjectSymbols::kMostAhead);
  symbols_.ReadAhead(sampled);
  symbols_.ReadForWindow({shell_});
  EXPECT_EQ(store_.counters().pending, ObjectSymbols::kMostAhead + 1);
  go_on.count_down();
  for (const SampledObject& object : sampled) {
    EXPECT_TRUE(IsNamed(symbols_.Await(object, kForEver)));
  }
  EXPECT_TRUE(IsNamed(symbols_.Await(shell_, kForEver)));
}

TEST_F(ObjectSymbolsTest, AreNotReadAheadAnyMoreAtTheEnd) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  const std::vector<SampledObject> sampled = Many(2 * ObjectSymbols::kMostAhead);
  symbols_.ReadAhead(sampled);
  symbols_.StopReadingAhead();
  symbols_.ReadAhead(sampled);
  go_on.count_down();
  AwaitQuiet();
  EXPECT_EQ(indexer_->asked, static_cast<int>(ObjectSymbols::kMostAhead));
}

TEST_F(ObjectSymbolsTest, AreReadAgainOnceForgotten) {
  symbols_.Await(shell_, kForEver);
  symbols_.Forget(std::vector{kShell});
  EXPECT_FALSE(symbols_.Find(shell_));
  EXPECT_TRUE(IsNamed(symbols_.Await(shell_, kForEver)));
  EXPECT_EQ(indexer_->asked, 2);
}

TEST_F(ObjectSymbolsTest, LeaveNothingOfWhatIsForgottenBeforeItIsRead) {
  std::latch go_on(1);
  indexer_->before_reading = [&] { go_on.wait(); };
  const std::vector<SampledObject> sampled = Many(ObjectSymbols::kMostAhead + 1);
  symbols_.ReadAhead(sampled);
  symbols_.Forget(std::vector{sampled.front().id, sampled.back().id});
  go_on.count_down();
  AwaitQuiet();
  EXPECT_FALSE(symbols_.Find(sampled.front()));
  EXPECT_TRUE(IsNamed(symbols_.Find(sampled[1])));
  EXPECT_FALSE(symbols_.Find(sampled.back()));
  EXPECT_EQ(indexer_->asked, static_cast<int>(ObjectSymbols::kMostAhead));
}

TEST_F(ObjectSymbolsTest, AreNotReadOnceItIsTooLate) {
  symbols_.GiveUpAt(clock_.Now());
  symbols_.ReadAhead(std::span(&shell_, 1));
  EXPECT_FALSE(symbols_.Await(shell_, kForEver));
  EXPECT_EQ(indexer_->asked, 0);
}

}  // namespace
}  // namespace pyrometer
