// SPDX-License-Identifier: Apache-2.0
#include "foreign/opener_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/shared/eventually.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLongForOpeners(60);

// A file system as bad as it is told to be by the paths that it is asked for. Its openers are other
// processes: what they tell the test lies in memory that they share.
class BadFileSystem : public FileOperations {
 public:
  bool IsLocal(int fd) override { return is_local && FileOperations::IsLocal(fd); }
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags) override {
    MayHang(path);
    if (path == "dies" || deaths()-- > 0) ::_exit(1);
    return FileOperations::LookUp(root_fd, path, flags);
  }
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most) override {
    MayHang(name);
    return FileOperations::ReadText(directory_fd, name, most);
  }
  // The opener that was asked last.
  std::atomic<pid_t>& asked() const { return *static_cast<std::atomic<pid_t>*>(shared_.get()); }

  // So many look-ups end with who is asked.
  std::atomic<int>& deaths() const { return *(static_cast<std::atomic<int>*>(shared_.get()) + 1); }

  bool is_local = true;

 private:
  void MayHang(const std::string& name) const {
    asked() = ::getpid();
    if (name == "hangs for ever" && ::fork() == 0) {
      // Keeps the opener's socket, so that it counts as one that cannot be killed.
      ::alarm(60);
      while (true) ::pause();
    }
    while (name.starts_with("hangs")) ::pause();
  }

  struct Unmap {
    void operator()(void* page) const { ::munmap(page, sizeof(std::atomic<pid_t>)); }
  };
  std::unique_ptr<void, Unmap> shared_{::mmap(nullptr, sizeof(std::atomic<pid_t>),
                                              PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                              -1, 0)};
};

class OpenerPoolTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const Clock> clock_ = std::make_shared<Clock>();
  std::unique_ptr<OpenerPool> Start() {
    Result<std::unique_ptr<OpenerPool>> files =
        OpenerPool::Start({.clock = clock_, .operations = &operations_});
    return files ? *std::move(files) : nullptr;
  }
  UniqueFd PathTo(const std::string& name) const {
    return UniqueFd(::open(tree_.Path(name).c_str(), O_PATH | O_CLOEXEC));
  }
  static std::string Content(const Result<OpenedFile>& file) {
    return file ? ReadAll(file->fd.get(), size_t{8} << 20).value_or("unreadable") : "not open";
  }

  TemporaryTree tree_;
  BadFileSystem operations_;
};

bool HasEnded(pid_t pid) {
  for (int i = 0; i < 6000; ++i) {
    if (::kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST_F(OpenerPoolTest, OpensFilesByWhatStandsForThem) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  for (int i = 0; i < 20; ++i) {
    const Result<OpenedFile> file = files->OpenForReading(PathTo("file").get(), {kLongForOpeners});
    EXPECT_EQ(Content(file), "content");
    EXPECT_FALSE(file->is_copy);
  }
}

TEST_F(OpenerPoolTest, CopiesWhatIsNotLocal) {
  const std::string content =
      "begin" + std::string(size_t{1} << 20, '\0') + "end" + std::string(size_t{1} << 20, '\0');
  tree_.File("file", content);
  operations_.is_local = false;
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd path = PathTo("file");
  Result<OpenedFile> file = files->OpenForReading(path.get(), {kLongForOpeners});
  EXPECT_TRUE(Content(file) == content);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->is_copy);
  struct stat original {};
  struct stat copy {};
  ASSERT_EQ(::fstat(path.get(), &original) | ::fstat(file->fd.get(), &copy), 0);
  EXPECT_NE(original.st_ino, copy.st_ino);
}

TEST_F(OpenerPoolTest, OpensNothingButFiles) {
  ASSERT_EQ(::mkfifo(tree_.Path("fifo").c_str(), 0600), 0);
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  for (const char* name : {"fifo", ""}) {
    const Result<OpenedFile> file = files->OpenForReading(PathTo(name).get(), {kLongForOpeners});
    ASSERT_FALSE(file.has_value()) << name;
    EXPECT_EQ(file.error().code(), ErrorCode::kInvalid);
  }
}

TEST_F(OpenerPoolTest, LooksUpPathsInsideARoot) {
  tree_.File("root/directory/file", "content");
  tree_.Link("root/link", "/directory/file");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd root = PathTo("root");
  const Result<UniqueFd> found = files->LookUp(root.get(), "/link", 0, {kLongForOpeners});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(Content(files->OpenForReading(found->get(), {kLongForOpeners})), "content");
  EXPECT_EQ(files->LookUp(root.get(), "/nothing", 0, {kLongForOpeners}).error().code(),
            ErrorCode::kNotFound);
  EXPECT_FALSE(files->LookUp(root.get(), "/link", O_DIRECTORY, {kLongForOpeners}).has_value());
  EXPECT_EQ(files->LookUp(root.get(), std::string(5000, 'x'), 0, {kLongForOpeners}).error().code(),
            ErrorCode::kInvalid);
}

TEST_F(OpenerPoolTest, ReadsTexts) {
  tree_.File("100/maps", std::string(10000, 'a') + std::string(10000, 'b'));
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd directory = PathTo("100");
  const auto read = [&](uint64_t most) {
    const Result<UniqueFd> text = files->ReadText(directory.get(), "maps", most, {kLongForOpeners});
    return text ? ReadAll(text->get(), size_t{1} << 20).value_or("unreadable") : "no text";
  };
  EXPECT_TRUE(read(100'000) == std::string(10000, 'a') + std::string(10000, 'b'));
  EXPECT_TRUE(read(10'001) == std::string(10000, 'a') + "b");
  EXPECT_EQ(files->ReadText(directory.get(), "nothing", 1, {kLongForOpeners}).error().code(),
            ErrorCode::kNotFound);
}

TEST_F(OpenerPoolTest, FollowsLinks) {
  tree_.File("file", "content");
  tree_.Link("100/map_files/1-2", "../../file");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd directory = PathTo("100");
  const Result<UniqueFd> file = files->Follow(directory.get(), "map_files/1-2", {kLongForOpeners});
  ASSERT_TRUE(file);
  EXPECT_EQ(Content(files->OpenForReading(file->get(), {kLongForOpeners})), "content");
  EXPECT_EQ(files->Follow(directory.get(), "map_files/2-3", {kLongForOpeners}).error().code(),
            ErrorCode::kNotFound);
}

// What hangs, and how that is asked for.
struct HungQuestion {
  const char* name;
  Result<UniqueFd> (*ask)(ForeignFiles& files, int directory, milliseconds limit);
};

class HungQuestionTest : public OpenerPoolTest, public testing::WithParamInterface<HungQuestion> {};

TEST_P(HungQuestionTest, IsGivenUpWithItsOpener) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd directory = PathTo("");
  for (milliseconds limit(50); operations_.asked() == 0; limit *= 2) {
    ASSERT_LT(limit, kLongForOpeners);  // it may have been given up before it was asked
    const Result<UniqueFd> hung = GetParam().ask(*files, directory.get(), limit);
    ASSERT_FALSE(hung.has_value());
    EXPECT_EQ(hung.error().code(), ErrorCode::kLate);
  }
  EXPECT_TRUE(HasEnded(operations_.asked()));
  EXPECT_EQ(Content(files->OpenForReading(PathTo("file").get(), {kLongForOpeners})), "content");
  EXPECT_TRUE(files->ReadText(directory.get(), "file", 100, {kLongForOpeners}));
  EXPECT_EQ(files->stuck(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    OpenerPool, HungQuestionTest,
    testing::Values(HungQuestion{"LookUp",
                                 [](ForeignFiles& files, int directory, milliseconds limit) {
                                   return files.LookUp(directory, "hangs", 0, {limit});
                                 }},
                    HungQuestion{"ReadText",
                                 [](ForeignFiles& files, int directory, milliseconds limit) {
                                   return files.ReadText(directory, "hangs", 100, {limit});
                                 }}),
    [](const auto& test) { return test.param.name; });

TEST_F(OpenerPoolTest, GivesUpAllThatHangsWhenTheEndHasCome) {
  constexpr std::chrono::hours kForEver(1);
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const UniqueFd directory = PathTo("");
  std::future<Result<UniqueFd>> under_way = std::async(
      std::launch::async, [&] { return files->LookUp(directory.get(), "hangs", 0, {kForEver}); });
  while (operations_.asked() == 0) std::this_thread::sleep_for(milliseconds(1));
  tree_.File("file", "content");
  files->GiveUpAt(clock_->Now());
  EXPECT_EQ(under_way.get().error().code(), ErrorCode::kLate);
  EXPECT_EQ(files->ReadText(directory.get(), "hangs", 100, {kForEver}).error().code(),
            ErrorCode::kLate);
  // Once at least: the opener may not get to run at once.
  EXPECT_TRUE(Eventually([&] {
    return files->ReadText(directory.get(), "file", 100, {kForEver}).has_value();
  })) << "what does not hang has its answer";
}

TEST_F(OpenerPoolTest, AsksAnotherIfOneDies) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  const auto look = [&] { return files->LookUp(PathTo("").get(), "file", 0, {kLongForOpeners}); };
  operations_.deaths() = 1;
  EXPECT_TRUE(look()) << "in the middle";
  ::kill(operations_.asked(), SIGKILL);
  ASSERT_TRUE(HasEnded(operations_.asked()));
  operations_.deaths() = 0;
  EXPECT_TRUE(look()) << "while it had nothing to do";
  operations_.deaths() = 2;
  EXPECT_EQ(look().error().code(), ErrorCode::kLate) << "perhaps of the file";
}

TEST_F(OpenerPoolTest, OutlivesOpenersThatDie) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  EXPECT_FALSE(files->LookUp(PathTo("").get(), "dies", 0, {kLongForOpeners}).has_value());
  EXPECT_EQ(Content(files->OpenForReading(PathTo("file").get(), {kLongForOpeners})), "content");
}

TEST_F(OpenerPoolTest, AnswersSeveralAtOnceWhileOneHangs) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  std::jthread hanging(
      [&] { files->LookUp(PathTo("").get(), "hangs", 0, {seconds(1)}).has_value(); });
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        right +=
            Content(files->OpenForReading(PathTo("file").get(), {kLongForOpeners})) == "content"
                ? 1
                : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 80);
}

TEST_F(OpenerPoolTest, LeavesNothingBehind) {
  auto files = Start();
  ASSERT_NE(files, nullptr);
  files->LookUp(PathTo("").get(), "nothing", 0, {kLongForOpeners}).has_value();
  const pid_t opener = operations_.asked();
  files.reset();
  EXPECT_TRUE(HasEnded(opener));
}

TEST_F(OpenerPoolTest, HoldsNoDescriptorOfOurs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  files->LookUp(PathTo("").get(), "nothing", 0, {kLongForOpeners}).has_value();
  in.Reset();
  char byte = 0;
  EXPECT_EQ(::read(out.get(), &byte, 1), 0);  // as nobody can write
}

TEST_F(OpenerPoolTest, LosesFewOpenersToAFileSystemHoweverOftenItIsTried) {
  tree_.File("file", "content");
  const auto files = Start();
  ASSERT_NE(files, nullptr);
  milliseconds limit(50);
  for (int i = 0; i < 5 || files->stuck() < OpenerPool::kMostStuckOfOne; ++i, limit *= 2) {
    ASSERT_LT(limit, kLongForOpeners) << "openers that hang can be killed";
    const Result<UniqueFd> hung = files->LookUp(PathTo("").get(), "hangs for ever", 0, {limit, 7});
    ASSERT_FALSE(hung.has_value());
    EXPECT_EQ(hung.error().code(), ErrorCode::kLate);
  }
  EXPECT_EQ(files->stuck(), OpenerPool::kMostStuckOfOne);
  EXPECT_EQ(Content(files->OpenForReading(PathTo("file").get(), {kLongForOpeners, 8})), "content");
  EXPECT_FALSE(files->OpenForReading(PathTo("file").get(), {kLongForOpeners, 7}))
      << "it would hang";
}

// Nobody knows beforehand that all these paths lead to one file system.
TEST_F(OpenerPoolTest, OpensFilesHoweverManyPathsHang) {
  tree_.File("file", "content");
  const auto files =
      OpenerPool::Start({.clock = clock_, .max_stuck = 8, .operations = &operations_});
  ASSERT_TRUE(files.has_value());
  for (uint64_t path = 100; path < 120; ++path) {
    EXPECT_FALSE((*files)->LookUp(PathTo("").get(), "hangs for ever", 0, {milliseconds(30), path}));
  }
  EXPECT_EQ((*files)->stuck(), 4U);
  EXPECT_EQ(Content((*files)->OpenForReading(PathTo("file").get(), {kLongForOpeners, 7})),
            "content");
}

// Those that read in /proc and the others have room of their own.
TEST_F(OpenerPoolTest, OpensNothingWithTooManyStuckButReads) {
  tree_.File("file", "content");
  const auto files =
      OpenerPool::Start({.clock = clock_, .max_stuck = 0, .operations = &operations_});
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ((*files)->OpenForReading(PathTo("file").get(), {kLongForOpeners}).error().code(),
            ErrorCode::kExhausted);
  EXPECT_TRUE((*files)->ReadText(PathTo("").get(), "file", 100, {kLongForOpeners}));
}

TEST_F(OpenerPoolTest, ReadsNothingWithTooManyStuckButOpens) {
  tree_.File("file", "content");
  const auto files = OpenerPool::Start({.clock = clock_,
                                        .max_stuck = 1,
                                        .max_stuck_reading = 2,
                                        .max_idle = 0,
                                        .operations = &operations_});
  ASSERT_TRUE(files.has_value());
  milliseconds limit(30);
  for (uint64_t process = 100; (*files)->stuck() < 2; ++process, limit *= 2) {
    ASSERT_LT(limit, kLongForOpeners);
    EXPECT_FALSE((*files)->ReadText(PathTo("").get(), "hangs for ever", 100, {limit, process}));
  }
  EXPECT_EQ((*files)->ReadText(PathTo("").get(), "file", 100, {kLongForOpeners}).error().code(),
            ErrorCode::kExhausted);
  EXPECT_EQ(Content((*files)->OpenForReading(PathTo("file").get(), {kLongForOpeners})), "content");
}

}  // namespace
}  // namespace pyrometer
