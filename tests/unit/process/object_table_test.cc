// SPDX-License-Identifier: Apache-2.0
#include "process/object_table.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_identity.h"
#include "foreign/direct_foreign_files.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/process/fake_machine.h"

namespace pyrometer {
namespace {

constexpr RootIdentity kHost{1, 2, 3};
constexpr RootIdentity kContainer{1, 9, 4};

// Leads to two files of the test's choice; "" leads nowhere.
class FakeFinder : public FileFinder {
 public:
  FakeFinder(std::string mapping, std::string path)
      : mapping_(std::move(mapping)), path_(std::move(path)) {}
  UniqueFd OpenMapping() override { return OpenFile(mapping_); }
  Way FindPath() override { return {.file = OpenFile(path_), .root = {}}; }
  std::optional<std::chrono::system_clock::time_point> MappedAt() const override {
    return mapped_at;
  }

  int opens = 0;
  std::optional<std::chrono::system_clock::time_point> mapped_at = {};

 private:
  UniqueFd OpenFile(const std::string& path) {
    ++opens;
    return UniqueFd(path.empty() ? -1 : ::open(path.c_str(), O_PATH | O_CLOEXEC));
  }
  std::string mapping_;
  std::string path_;
};

MappedFile WithBuildId(const std::string& path, char byte) {
  return {path, FakeBuildId(byte), 0, 0, 0, 0};
}

class ObjectTableTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) const {
    machine_.WriteFile(machine_.root() + "/" + name, content);
    return machine_.root() + "/" + name;
  }

  MappedFile WithInode(const std::string& path, const std::string& file) const {
    struct stat status {};
    EXPECT_EQ(::stat(file.c_str(), &status), 0);
    return {path,          BuildId(), gnu_dev_major(status.st_dev), gnu_dev_minor(status.st_dev),
            status.st_ino, 0};
  }

  FakeMachine machine_;
  std::shared_ptr<FakeInspector> inspector_ = std::make_shared<FakeInspector>();
  FileInspections inspections_{kPatient, clock_, std::make_shared<DirectForeignFiles>(),
                               inspector_};
  FakeClock clock_;
  ObjectTable table_{{.clock = clock_, .max_objects = 6, .held_files = 2}, inspections_};
};

TEST_F(ObjectTableTest, TakesNoContentThatIsNewerThanTheMapping) {
  const std::string file = File("lib", "ELF a");
  const auto written = std::chrono::system_clock::time_point(std::chrono::nanoseconds(
      IdentityOf(UniqueFd(::open(file.c_str(), O_PATH | O_CLOEXEC)).get())->changed_ns));
  for (const bool is_through_mapping : {false, true}) {
    FakeFinder finder(is_through_mapping ? file : "", file);
    const MappedFile name = WithInode(is_through_mapping ? "/1" : "/2", file);
    finder.mapped_at = written - std::chrono::nanoseconds(1);
    EXPECT_FALSE(table_.Find(table_.Identify(kHost, name, finder))->was_opened);
    EXPECT_TRUE(table_.Find(table_.Identify(kHost, WithBuildId("/lib", 'a'), finder))->was_opened)
        << "a build id tells which content it is";
    finder.mapped_at = written;
    EXPECT_TRUE(table_.Find(table_.Identify(kHost, name, finder))->was_opened);
  }
}

TEST_F(ObjectTableTest, TakesCodeForAMemfdsThatIsWrittenAfterItIsMapped) {
  const std::string memory = File("memory", "code");
  FakeFinder finder(memory, "");
  finder.mapped_at = std::chrono::system_clock::time_point();
  EXPECT_EQ(table_.Identify(kHost, WithInode("/memfd:doublemapper (deleted)", memory), finder),
            ObjectId(0));
}

TEST_F(ObjectTableTest, TakesCodeForSharedMemorysThatIsWrittenAfterItIsMapped) {
  const std::string memory = File("memory", "code");
  FakeFinder finder(memory, "");
  finder.mapped_at = std::chrono::system_clock::time_point();
  for (const char* const path : {"/dev/shm/jit (deleted)", "/dev/shm/jit",
                                 "/SYSV00000001 (deleted)", "/tmp/jit-7f (deleted)"}) {
    EXPECT_EQ(table_.Identify(kHost, WithInode(path, memory), finder), ObjectId(0)) << path;
  }
  const ObjectId file = table_.Identify(kHost, WithInode("/usr/lib/app.dll", memory), finder);
  EXPECT_NE(file, ObjectId(0)) << "its frames are known by its name";
}

TEST_F(ObjectTableTest, TakesNoElfFileInSharedMemoryThatWasWrittenToSinceItWasMapped) {
  const std::string elf = File("elf", "ELF a");
  FakeFinder finder(elf, "");
  finder.mapped_at = std::chrono::system_clock::time_point();
  const MappedFile file = WithInode("/dev/shm/program", elf);
  EXPECT_FALSE(table_.Find(table_.Identify(kHost, file, finder))->was_opened);
  FakeFinder later(elf, elf);  // mapped as it is now
  EXPECT_TRUE(table_.Find(table_.Identify(kHost, WithInode("/dev/shm/2", elf), later))->was_opened);
  EXPECT_FALSE(
      table_.Find(table_.Identify(kHost, WithInode("/dev/shm/3", elf), finder))->was_opened);
}

TEST_F(ObjectTableTest, AsksAgainWhatIsInAFileWhoseReaderWasLate) {
  const std::string libc = File("libc", "ELF a");
  FakeFinder finder(libc, libc);
  inspector_->is_late = true;
  const ObjectId placeholder = table_.Identify(kHost, WithBuildId("/libc", 'a'), finder);
  EXPECT_FALSE(table_.Find(placeholder)->was_opened);
  clock_.Advance(std::chrono::seconds(1));
  std::vector<ObjectTable::Identified> identified;
  ASSERT_TRUE(Eventually([&] {
    identified = table_.TakeIdentified(clock_.Now());
    return !identified.empty();
  }));
  EXPECT_EQ(identified.front().placeholder, placeholder);
  EXPECT_TRUE(table_.Find(identified.front().object)->was_opened);
}

TEST_F(ObjectTableTest, OpensAFileOnceForAllItsMappings) {
  const std::string libc = File("libc", "ELF a");
  FakeFinder finder(libc, libc);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/libc", 'a'), finder);
  const int opens = finder.opens;
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/libc", 'a'), finder), id);
  EXPECT_EQ(finder.opens, opens);
  EXPECT_EQ(inspector_->inspections, 1);
  const ObjectInfo* info = table_.Find(id);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->path, "/libc");
  EXPECT_EQ(info->build_id, FakeBuildId('a'));
  EXPECT_EQ(info->segments.size(), 1U);
  EXPECT_TRUE(info->was_opened);
}

TEST_F(ObjectTableTest, KnowsTheSameFileByInodeAndByBuildId) {
  const std::string libc = File("libc", "ELF a");
  FakeFinder finder(libc, libc);
  const ObjectId scanned = table_.Identify(kHost, WithInode("/libc", libc), finder);
  const int opens = finder.opens;
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/libc", 'a'), finder), scanned);
  EXPECT_EQ(finder.opens, opens);
}

TEST_F(ObjectTableTest, KnowsTheSameFileInAnotherRoot) {
  const std::string libc = File("libc", "ELF a");
  FakeFinder finder(libc, libc);
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/libc", 'a'), finder),
            table_.Identify(kContainer, WithBuildId("/libc", 'a'), finder));
}

// Of a process in a sandbox: its root is the directory of a process that has ended.
class FinderInEmptyRoot : public FakeFinder {
 public:
  explicit FinderInEmptyRoot(std::string mapping) : FakeFinder(std::move(mapping), "") {}
  Way FindPath() override {
    return {.file = {}, .root = UniqueFd(::open("/proc/self/fdinfo", O_PATH | O_CLOEXEC))};
  }
};

TEST_F(ObjectTableTest, KnowsAFileByItsInodeWhereNoPathLeadsToIt) {
  const std::string libc = File("libc", "ELF a");
  const MappedFile name = WithInode("/libc", libc);
  FinderInEmptyRoot finder(libc);
  const ObjectId id = table_.Identify(kContainer, name, finder);
  EXPECT_EQ(table_.waiting(), 0U) << "a file system is asked for a path that leads nowhere";
  FakeFinder nowhere("", "");
  EXPECT_EQ(table_.Identify(kContainer, name, nowhere), id);
  EXPECT_EQ(table_.Identify(kHost, name, nowhere), id);
  EXPECT_EQ(nowhere.opens, 0);
  EXPECT_FALSE(table_.Find(table_.Identify(kHost, WithBuildId("/libc", 'a'), nowhere))->was_opened)
      << "its path was not seen to lead there";
}

TEST_F(ObjectTableTest, KnowsNoFileByItsInodeThatIsNotWhatItWas) {
  const std::string lib = File("lib", "ELF a");
  const MappedFile name = WithInode("/lib", lib);
  FakeFinder finder(lib, "");
  FakeFinder nowhere("", "");
  const ObjectId id = table_.Identify(kHost, name, finder);
  nowhere.mapped_at = std::chrono::system_clock::time_point();
  EXPECT_NE(table_.Identify(kHost, name, nowhere), id) << "it may have been written to since";
  nowhere.mapped_at.reset();
  EXPECT_EQ(table_.Identify(kHost, name, nowhere), id);
  File("lib", "ELF b, longer");
  EXPECT_NE(table_.Identify(kHost, name, nowhere), id) << "it has been written to";
  const ObjectId second = table_.Identify(kHost, name, finder);
  EXPECT_EQ(table_.Identify(kHost, name, nowhere), second);
  table_.CloseUnused({});
  EXPECT_NE(table_.Identify(kHost, name, nowhere), second) << "another may have its inode";
}

TEST_F(ObjectTableTest, KnowsNoFileByTheInodeOfAnother) {
  const std::string one = File("one", "ELF a");
  const std::string two = File("two", "ELF a");
  FakeFinder late(two, "");  // what is there now was mapped after the name was read
  const ObjectId id = table_.Identify(kHost, WithInode("/one", one), late);
  FakeFinder nowhere("", "");
  EXPECT_NE(table_.Identify(kContainer, WithInode("/one", one), nowhere), id);
}

TEST_F(ObjectTableTest, TellsAForgedBuildIdApart) {
  const std::string libc = File("libc", "ELF a");
  const std::string forged = File("forged", "ELF a, but not that one");
  FakeFinder finder(libc, libc);
  FakeFinder forger(forged, forged);
  EXPECT_NE(table_.Identify(kContainer, WithBuildId("/libc", 'a'), forger),
            table_.Identify(kHost, WithBuildId("/libc", 'a'), finder));
}

TEST_F(ObjectTableTest, DoesNotRememberANameThatLeadsElsewhere) {
  const std::string libc = File("libc", "ELF a");
  const std::string forged = File("evil/libc", "ELF a, but not that one");
  FakeFinder forger(forged, libc);  // mapped something else under the path of libc
  FakeFinder finder(libc, libc);
  const ObjectId evil = table_.Identify(kHost, WithBuildId("/libc", 'a'), forger);
  EXPECT_NE(table_.Identify(kHost, WithBuildId("/libc", 'a'), finder), evil);
}

TEST_F(ObjectTableTest, TakesTheMappedFileWhenThePathHasANewOne) {
  const std::string old = File("old", "ELF a");
  const std::string upgraded = File("new", "ELF b");
  FakeFinder finder(old, upgraded);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  EXPECT_EQ(table_.Find(id)->build_id, FakeBuildId('a'));
  EXPECT_EQ(ContentOf(table_.OpenHeld(id)), "ELF a");
}

TEST_F(ObjectTableTest, TakesTheNamedFileWhenTheMappingHasAnotherOne) {
  // Unloaded, and a copy of it loaded at its place, before the first could be looked at.
  const std::string libc = File("libc", "ELF a");
  const std::string copy = File("copy", "ELF a");
  FakeFinder late(copy, libc);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/libc", 'a'), late);
  FakeFinder finder(copy, copy);
  const ObjectId second = table_.Identify(kHost, WithBuildId("/copy", 'a'), finder);
  EXPECT_EQ(table_.Find(id)->path, "/libc");
  EXPECT_EQ(table_.Find(second)->path, "/copy");
}

TEST_F(ObjectTableTest, TakesNoOtherFileForOneThatIsGone) {
  const std::string gone = File("gone", "ELF a");
  const MappedFile file = WithInode("/gone", gone);
  const std::string other = File("other", "ELF b");
  ASSERT_EQ(::unlink(gone.c_str()), 0);
  FakeFinder late(other, "");
  EXPECT_FALSE(table_.Find(table_.Identify(kHost, file, late))->was_opened);
}

TEST_F(ObjectTableTest, TakesAMappedFileThatWasRenamed) {
  const std::string before = File("before", "ELF a");
  const MappedFile file = WithInode("/before", before);
  const std::string after = machine_.root() + "/after";
  ASSERT_EQ(::rename(before.c_str(), after.c_str()), 0);
  FakeFinder finder(after, "");
  EXPECT_TRUE(table_.Find(table_.Identify(kHost, file, finder))->was_opened);
}

TEST_F(ObjectTableTest, RefusesAFileWithAnotherBuildId) {
  const std::string upgraded = File("new", "ELF b");
  FakeFinder finder("", upgraded);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  ASSERT_NE(table_.Find(id), nullptr);
  EXPECT_FALSE(table_.Find(id)->was_opened);
  EXPECT_EQ(table_.Find(id)->build_id, FakeBuildId('a'));
  EXPECT_EQ(table_.OpenHeld(id).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(table_.unopened(), 1U);
}

TEST_F(ObjectTableTest, RefusesAPathThatLeadsToAnotherInode) {
  const std::string one = File("one", "ELF a");
  const std::string two = File("two", "ELF a");
  FakeFinder finder("", two);
  const ObjectId id = table_.Identify(kHost, WithInode("/lib", one), finder);
  EXPECT_FALSE(table_.Find(id)->was_opened);
}

TEST_F(ObjectTableTest, RefusesAPathThatLeadsToTheSameInodeOfAnotherDevice) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder("", lib);
  MappedFile file = WithInode("/lib", lib);
  ++file.minor;
  EXPECT_FALSE(table_.Find(table_.Identify(kHost, file, finder))->was_opened);
  --file.minor;
  ++file.major;
  EXPECT_FALSE(table_.Find(table_.Identify(kHost, file, finder))->was_opened);
}

TEST_F(ObjectTableTest, TriesAgainWhatCouldNotBeOpened) {
  FakeFinder nowhere("", "");
  const ObjectId gone = table_.Identify(kHost, WithBuildId("/lib", 'a'), nowhere);
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/lib", 'a'), nowhere), gone);
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId found = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  EXPECT_NE(found, gone) << "its frames are file offsets, the new one's are ELF addresses";
  EXPECT_TRUE(table_.Find(found)->was_opened);
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/lib", 'a'), nowhere), found);
}

TEST_F(ObjectTableTest, TellsLaterWhatCouldNotBeOpened) {
  FakeFinder nowhere("", "");
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId by_build_id = table_.Identify(kHost, WithBuildId("/lib", 'a'), nowhere);
  const ObjectId by_inode = table_.Identify(kHost, WithInode("/lib", lib), nowhere);
  const ObjectId elsewhere = table_.Identify(kContainer, WithBuildId("/lib", 'a'), nowhere);
  EXPECT_TRUE(table_.TakeIdentified(clock_.Now()).empty());
  const ObjectId found = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  std::map<ObjectId, ObjectId> identified;
  for (const auto& [placeholder, object] : table_.TakeIdentified(clock_.Now())) {
    identified[placeholder] = object;
  }
  EXPECT_EQ(identified, (std::map<ObjectId, ObjectId>{{by_build_id, found}, {by_inode, found}}));
  EXPECT_NE(elsewhere, found) << "another root: whoever put it there may have forged the build id";
}

TEST_F(ObjectTableTest, DoesNotTellOfALaterContentWhatCouldNotBeOpened) {
  const std::string lib = File("lib", "ELF a");
  const auto written = std::chrono::system_clock::time_point(std::chrono::nanoseconds(
      IdentityOf(UniqueFd(::open(lib.c_str(), O_PATH | O_CLOEXEC)).get())->changed_ns));
  FakeFinder nowhere("", "");
  nowhere.mapped_at = written - std::chrono::nanoseconds(1);
  const MappedFile name = WithInode("/lib", lib);
  const ObjectId before = table_.Identify(kHost, name, nowhere);
  FakeFinder finder(lib, lib);
  finder.mapped_at = written;
  EXPECT_NE(table_.Identify(kHost, name, finder), before);
  EXPECT_TRUE(table_.TakeIdentified(clock_.Now()).empty());
}

TEST_F(ObjectTableTest, TakesAChangedFileForAnotherObject) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId before = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  ASSERT_EQ(::rename(lib.c_str(), (lib + ".old").c_str()), 0);
  FakeFinder other(File("lib", "ELF b"), lib);
  EXPECT_NE(table_.Identify(kHost, WithBuildId("/lib", 'b'), other), before);
}

TEST_F(ObjectTableTest, KeepsDeletedFilesReadable) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  ASSERT_EQ(::unlink(lib.c_str()), 0);
  EXPECT_EQ(ContentOf(table_.OpenHeld(id)), "ELF a");
}

TEST_F(ObjectTableTest, GivesOutDescriptorsThatNoChildInherits) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  const Result<UniqueFd> given = table_.OpenHeld(id);
  ASSERT_TRUE(given.has_value());
  EXPECT_NE(::fcntl(given->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ObjectTableTest, ClosesTheFileNotUsedForLongest) {
  std::vector<ObjectId> ids;
  for (const char byte : {'a', 'b', 'c'}) {
    const std::string file = File(std::string(1, byte), std::string("ELF ") + byte);
    FakeFinder finder(file, file);
    if (byte == 'c') {
      EXPECT_TRUE(table_.OpenHeld(ids[0]).has_value());
    }
    ids.push_back(table_.Identify(kHost, WithBuildId(file, byte), finder));
  }
  EXPECT_TRUE(table_.OpenHeld(ids[0]).has_value());
  EXPECT_FALSE(table_.OpenHeld(ids[1]).has_value());
  const Result<UniqueFd> wrong = Open(machine_.root() + "/c", O_RDONLY);
  EXPECT_FALSE(table_.Reopen(ids[1], UniqueFd(::dup(wrong->get()))));
  EXPECT_TRUE(table_.Reopen(ids[1], UniqueFd(::open((machine_.root() + "/b").c_str(), O_RDONLY))));
  EXPECT_EQ(ContentOf(table_.OpenHeld(ids[1])), "ELF b");
}

TEST_F(ObjectTableTest, ClosesAFileThatIsNotInUse) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  table_.CloseUnused({id});
  EXPECT_TRUE(table_.OpenHeld(id).has_value());
  table_.CloseUnused({});
  EXPECT_FALSE(table_.OpenHeld(id).has_value());
  EXPECT_FALSE(table_.Knows(kHost, WithBuildId("/lib", 'a')));
}

TEST_F(ObjectTableTest, GivesIdsAgainLongAfterTheirLastUse) {
  ObjectTable table({.clock = clock_, .max_objects = 400, .held_files = 2}, inspections_);
  const std::string libc = File("libc", "ELF a");
  FakeFinder libc_finder(libc, libc);
  const ObjectId kept = table.Identify(kHost, WithBuildId("/libc", 'a'), libc_finder);
  absl::flat_hash_map<ObjectId, int> last_used;
  for (int look = 0; look < 2000; ++look) {
    const std::string path = "/" + std::to_string(look);
    const std::string file = File("lib", look % 2 == 0 ? "ELF b" : "no ELF");
    FakeFinder found(file, file);
    FakeFinder gone("", "");
    const ObjectId opened = table.Identify(kHost, WithInode(path, file), found);
    const ObjectId unopened = table.Identify(kHost, WithBuildId(path + "/gone", 'c'), gone);
    for (const auto& [id, name] : {std::pair(opened, path), std::pair(unopened, path + "/gone")}) {
      ASSERT_NE(id, ObjectId(0)) << look;
      EXPECT_EQ(table.Find(id)->path, name);
      const auto [known, is_new] = last_used.try_emplace(id, look);
      EXPECT_TRUE(is_new || look - known->second > static_cast<int>(ObjectTable::kQuarantine));
      known->second = look;
    }
    EXPECT_NE(opened, kept);
    table.CloseUnused({kept, opened, unopened});
    std::filesystem::remove(file);
  }
  EXPECT_LT(table.size(), 16U);
  EXPECT_EQ(table.Find(kept)->path, "/libc");
  EXPECT_EQ(table.Identify(kHost, WithBuildId("/libc", 'a'), libc_finder), kept);
  EXPECT_EQ(table.refused(), 0U);
}

TEST_F(ObjectTableTest, GivesNoIdAgainBeforeItsTimeThoughThereIsNoOther) {
  FakeFinder gone("", "");
  const auto identify = [&](uint64_t look) {
    return table_.Identify(kHost, WithBuildId("/" + std::to_string(look), 'c'), gone);
  };
  absl::flat_hash_set<ObjectId> given;
  for (uint64_t look = 0; look < ObjectTable::kQuarantine; ++look) {
    const ObjectId id = identify(look);
    EXPECT_TRUE(id == ObjectId(0) || given.insert(id).second) << look;
    table_.CloseUnused({});
  }
  EXPECT_FALSE(given.empty());
  EXPECT_GT(table_.refused(), 0U);
  for (int i = 0; i < 3; ++i) table_.CloseUnused({});
  EXPECT_TRUE(given.contains(identify(ObjectTable::kQuarantine)));
}

TEST_F(ObjectTableTest, HoldsAFileAgainThatItHadClosed) {
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId id = table_.Identify(kHost, WithBuildId("/lib", 'a'), finder);
  table_.CloseUnused({});
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/lib", 'a'), finder), id);
  EXPECT_EQ(ContentOf(table_.OpenHeld(id)), "ELF a");
  EXPECT_EQ(inspector_->inspections, 1);
}

TEST_F(ObjectTableTest, OpensAFileAgainRatherThanRememberAllItsNames) {
  ObjectTable table({.clock = clock_, .max_names = 2}, inspections_);
  const std::string lib = File("lib", "ELF a");
  FakeFinder finder(lib, lib);
  const ObjectId id = table.Identify(kHost, WithBuildId("/1/lib", 'a'), finder);
  EXPECT_EQ(table.Identify(kHost, WithBuildId("/2/lib", 'a'), finder), id);
  EXPECT_EQ(table.Identify(kHost, WithBuildId("/3/lib", 'a'), finder), id);
  EXPECT_FALSE(table.Knows(kHost, WithBuildId("/1/lib", 'a')));
  EXPECT_EQ(table.Identify(kHost, WithBuildId("/1/lib", 'a'), finder), id);
}

TEST_F(ObjectTableTest, TakesCodeInAMemfdForAnonymous) {
  const std::string code = File("code", "no elf");
  FakeFinder finder(code, "");
  EXPECT_EQ(table_.Identify(kHost, WithInode("/memfd:jit (deleted)", code), finder), ObjectId(0));
  const std::string elf = File("elf", "ELF a");
  FakeFinder runner(elf, "");
  const ObjectId id = table_.Identify(kHost, WithInode("/memfd:run (deleted)", elf), runner);
  EXPECT_NE(id, ObjectId(0));
  EXPECT_EQ(ContentOf(table_.OpenHeld(id)), "ELF a");
}

TEST_F(ObjectTableTest, GivesOutNoMoreIdsThanAFrameCanHold) {
  FakeFinder nowhere("", "");
  for (int i = 0; i < 10; ++i) {
    table_.Identify(kHost, WithBuildId("/" + std::to_string(i), 'a'), nowhere);
  }
  EXPECT_EQ(table_.size(), 6U);
  EXPECT_EQ(table_.refused(), 6U) << "two of the six are the vDSO's";
  EXPECT_EQ(table_.Identify(kHost, WithBuildId("/9", 'a'), nowhere), ObjectId(0));
}

TEST_F(ObjectTableTest, HasTheVdsoFromTheStart) {
  ASSERT_NE(table_.Find(ObjectTable::kVdso), nullptr);
  EXPECT_TRUE(table_.Find(ObjectTable::kVdso)->is_vdso);
  EXPECT_EQ(table_.Find(ObjectTable::kVdso)->path, "[vdso]");
  EXPECT_EQ(table_.Find(ObjectId(0)), nullptr);
  EXPECT_EQ(table_.Find(ObjectId(99)), nullptr);
}

}  // namespace
}  // namespace pyrometer
