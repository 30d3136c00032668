// SPDX-License-Identifier: Apache-2.0
#include "export/file_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/unique_fd.h"
#include "export/fd_sink.h"
#include "tests/unit/base/file_size_limit.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

class FileSinkTest : public testing::Test {
 protected:
  FileSinkTest() {
    std::string name = testing::TempDir() + "/pyrometer_sink_XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~FileSinkTest() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), {}));
  }

  fs::path directory_;
};

Result<void> WriteFile(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(FileSink sink, FileSink::Open(path));
  return sink.Write(bytes);
}

TEST_F(FileSinkTest, WritesAFileAndNothingElse) {
  ASSERT_TRUE(WriteFile(Path("out.pb.gz"), "content").has_value());
  EXPECT_EQ(*ReadFile(Path("out.pb.gz")), "content");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileSinkTest, ReplacesTheFileAtEachWrite) {
  Result<FileSink> sink = FileSink::Open(Path("out"));
  ASSERT_TRUE(sink.has_value());
  ASSERT_TRUE(sink->Write("a long first content").has_value());
  ASSERT_TRUE(sink->Write("second").has_value());
  EXPECT_EQ(*ReadFile(Path("out")), "second");
}

TEST_F(FileSinkTest, LeavesAnOpenOldFileWhole) {
  ASSERT_TRUE(WriteFile(Path("out"), "old").has_value());
  const Result<UniqueFd> reader = Open(Path("out"), O_RDONLY);
  ASSERT_TRUE(WriteFile(Path("out"), "new").has_value());
  EXPECT_EQ(*ReadAll(reader->get(), 100), "old");
}

TEST_F(FileSinkTest, GivesTheModeThatTheUmaskLeaves) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(WriteFile(Path("out"), "x").has_value());
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(Path("out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640);
}

TEST_F(FileSinkTest, CreatesNothingWhenOpened) {
  ASSERT_TRUE(FileSink::Open(Path("out")).has_value());
  EXPECT_EQ(Entries(), 0);
}

TEST_F(FileSinkTest, OpenNamesTheMissingDirectory) {
  const Result<FileSink> sink = FileSink::Open(Path("missing/out"));
  ASSERT_FALSE(sink.has_value());
  EXPECT_EQ(sink.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(sink.error().message(),
            Path("missing/out") + ": directory " + Path("missing") + ": No such file or directory");
}

TEST_F(FileSinkTest, OpenRefusesADirectoryAndAnEmptyName) {
  EXPECT_EQ(FileSink::Open(directory_).error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(FileSink::Open(directory_.string() + "/").error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(FileSink::Open("").error().code(), ErrorCode::kInvalid);
}

TEST_F(FileSinkTest, OpenRefusesADirectoryThatCannotBeWritten) {
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(directory_.c_str(), 0555), 0);
  const uid_t before = ::geteuid();
  if (before == 0) {  // root may write anywhere
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Result<FileSink> sink = FileSink::Open(Path("out"));
  ASSERT_EQ(::seteuid(before), 0);
  ASSERT_FALSE(sink.has_value());
  EXPECT_EQ(sink.error().code(), ErrorCode::kPermission);
}

TEST_F(FileSinkTest, FailsWhereNoFileCanBeMade) {
  EXPECT_FALSE(WriteFile("/proc/self/out", "x").has_value());
}

TEST_F(FileSinkTest, KeepsTheOldFileWhenTheDiskIsFull) {
  ASSERT_TRUE(WriteFile(Path("out"), "old").has_value());
  Result<void> written;
  {
    const FileSizeLimit limit(4096);
    written = WriteFile(Path("out"), std::string(10'000, 'x'));
  }
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(*ReadFile(Path("out")), "old");
  EXPECT_EQ(Entries(), 1) << "the temporary file was left behind";
}

TEST_F(FileSinkTest, SaysThatTheDiskIsFull) {
  const Result<void> written = WriteFile("/dev/full", "content");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code(), ErrorCode::kExhausted);
  EXPECT_EQ(written.error().message(), "/dev/full: write: No space left on device");
}

TEST_F(FileSinkTest, WritesADeviceInPlace) {
  ASSERT_TRUE(WriteFile("/dev/null", "content").has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileSinkTest, WritesThroughASymbolicLinkAndKeepsIt) {
  ASSERT_TRUE(WriteFile(Path("target"), "a much longer old content").has_value());
  fs::create_symlink(Path("target"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(*ReadFile(Path("target")), "new");
}

TEST_F(FileSinkTest, MakesTheFileThatALinkPointsTo) {
  fs::create_symlink(Path("target"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").has_value());
  EXPECT_EQ(*ReadFile(Path("target")), "new");
}

TEST_F(FileSinkTest, LeavesNoHalfFileBehindALink) {
  ASSERT_TRUE(WriteFile(Path("target"), "old").has_value());
  fs::create_symlink(Path("target"), Path("link"));
  Result<void> written;
  {
    const FileSizeLimit limit(4096);
    written = WriteFile(Path("link"), std::string(10'000, 'x'));
  }
  EXPECT_FALSE(written.has_value());
  EXPECT_EQ(*ReadFile(Path("target")), "");
}

TEST_F(FileSinkTest, WritesIntoAFifo) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = ReadFile(Path("fifo")).value_or("failed"); });
  ASSERT_TRUE(WriteFile(Path("fifo"), "content").has_value());
  reader.join();
  EXPECT_EQ(read, "content");
  EXPECT_TRUE(fs::is_fifo(Path("fifo")));
}

TEST_F(FileSinkTest, TakesANameInTheCurrentDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  const Result<void> written = WriteFile("plain-name", "x");
  fs::current_path(before);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(*ReadFile(Path("plain-name")), "x");
}

TEST_F(FileSinkTest, TakesTheLongestNameThereIs) {
  const std::string name(255, 'n');
  ASSERT_TRUE(WriteFile(Path(name), "x").has_value());
  EXPECT_FALSE(FileSink::Open(Path(name + "n")).has_value());
}

TEST(FdSink, WritesAndNamesItsDestinationInErrors) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  FdSink sink(writer.get(), "the pipe");
  ASSERT_TRUE(sink.Write("content").has_value());
  const int closed = writer.get();
  writer.Reset();
  EXPECT_EQ(*ReadAll(reader.get(), 100), "content");
  const Result<void> written = FdSink(closed, "the pipe").Write("x");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().message(), "the pipe: write: Bad file descriptor");
}

}  // namespace
}  // namespace pyrometer
