// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_lookup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "metadata/cgroup_mounts.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

const std::string kIdA = std::string(12, 'a') + std::string(52, '0');
const std::string kIdB = std::string(12, 'a') + std::string(52, '1');
const std::string kEcsId = std::string(32, 'e') + "-123456";

// A machine with a v2 hierarchy, v1 ones for cpu and blkio, and a named one.
class CgroupLookup : public testing::Test {
 protected:
  CgroupLookup() {
    std::string mountinfo;
    const std::pair<const char*, const char*> mounts[] = {
        {"unified", "cgroup2 cgroup2 rw"},
        {"cpu", "cgroup cgroup rw,cpu"},
        {"blkio", "cgroup cgroup rw,blkio"},
        {"systemd", "cgroup cgroup rw,name=systemd"},
    };
    for (const auto& [name, type] : mounts) {
      tree_.Directory(fmt::format("cgroup/{}", name));
      mountinfo += fmt::format("1 0 0:1 / {} rw - {}\n", Mount(name), type);
    }
    tree_.File("proc/self/mountinfo", mountinfo);
  }

  std::string Mount(std::string_view name) const {
    return tree_.Path("cgroup/") + std::string(name);
  }
  void Cgroup(std::string_view path) { tree_.Directory("cgroup/" + std::string(path)); }
  Result<CgroupTarget> Find(const std::string& path) { return FindCgroup(tree_.AsProcfs(), path); }
  Result<CgroupTarget> Container(const std::string& id) {
    return FindContainer(tree_.AsProcfs(), id);
  }

  TemporaryTree tree_;
};

TEST_F(CgroupLookup, FindsADirectoryByItsFullPath) {
  Cgroup("cpu/a/b");
  const Result<CgroupTarget> target = Find(Mount("cpu/a/b"));
  ASSERT_TRUE(target.has_value()) << target.error().message();
  EXPECT_EQ(target->path, Mount("cpu/a/b"));
  EXPECT_FALSE(target->v2);
  EXPECT_EQ(target->controller, "cpu");
  struct stat status {};
  ASSERT_EQ(stat(target->path.c_str(), &status), 0);
  EXPECT_EQ(target->id, status.st_ino);
}

TEST_F(CgroupLookup, AsksVersion2First) {
  Cgroup("cpu/a");
  Cgroup("unified/a");
  for (const char* path : {"a", "/a", "a/", "./a"}) {
    const Result<CgroupTarget> target = Find(path);
    ASSERT_TRUE(target.has_value()) << path;
    EXPECT_TRUE(target->v2);
    EXPECT_EQ(target->controller, "");
  }
}

TEST_F(CgroupLookup, FallsBackToVersion1) {
  Cgroup("blkio/a");
  const Result<CgroupTarget> target = Find("/a");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, Mount("blkio/a"));
  EXPECT_EQ(target->controller, "io") << "the kernel's name of blkio";
}

TEST_F(CgroupLookup, TakesTheRootForTheWholeHierarchy) {
  EXPECT_EQ(Find("/")->path, Mount("unified"));
  EXPECT_EQ(Find(Mount("cpu"))->path, Mount("cpu"));
}

TEST_F(CgroupLookup, FollowsLinksBetweenMounts) {
  Cgroup("cpu/a");
  tree_.Link("cgroup/cpuacct", "cpu");
  EXPECT_EQ(Find(Mount("cpuacct/a"))->path, Mount("cpu/a"));
}

TEST_F(CgroupLookup, TellsAMountBelowAnotherFromItsParent) {
  Cgroup("unified/net/a");
  tree_.File("proc/self/mountinfo", fmt::format("1 0 0:1 / {} rw - cgroup2 cgroup2 rw\n"
                                                "2 0 0:2 / {} rw - cgroup cgroup rw,net_cls\n",
                                                Mount("unified"), Mount("unified/net")));
  EXPECT_EQ(Find(Mount("unified/net/a"))->controller, "net_cls");
}

TEST_F(CgroupLookup, RefusesAHierarchyThatTheKernelSideCannotTell) {
  Cgroup("systemd/a");
  EXPECT_EQ(Find("a").error().code(), ErrorCode::kUnsupported);
}

TEST_F(CgroupLookup, DoesNotFindWhatIsNoCgroup) {
  tree_.Directory("elsewhere");
  for (const std::string& path :
       {std::string("nope"), std::string("/nope"), std::string("../../elsewhere"),
        std::string("a/../../.."), tree_.Path("elsewhere"), tree_.Path("cgroup")}) {
    const Result<CgroupTarget> target = Find(path);
    ASSERT_FALSE(target.has_value()) << path;
    EXPECT_EQ(target.error().code(), ErrorCode::kNotFound);
    EXPECT_THAT(target.error().message(), HasSubstr(path));
    EXPECT_THAT(target.error().message(), HasSubstr("and 2 more"));
  }
}

TEST_F(CgroupLookup, RefusesFilesAndNothing) {
  tree_.File("cgroup/cpu/tasks", "");
  EXPECT_EQ(Find(Mount("cpu/tasks")).error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(Find("").error().code(), ErrorCode::kInvalid);
}

TEST(ContainerIdOf, ReadsTheNamesOfEveryRuntime) {
  const std::pair<std::string, std::string> cases[] = {
      {kIdA, kIdA},
      {"docker-" + kIdA + ".scope", kIdA},
      {"cri-containerd-" + kIdA + ".scope", kIdA},
      {"kubepods-besteffort-podx.slice:cri-containerd:" + kIdA, kIdA},
      {"crio-" + kIdA, kIdA},
      {"libpod-" + kIdA + ".scope", kIdA},
      {"libpod_" + kIdA, kIdA},
      {kEcsId, kEcsId},
      {kIdA + "-" + kIdB, kIdB},  // the last counts
      {"libpod-conmon-" + kIdA + ".scope", ""},
      {"crio-conmon-" + kIdA + ".scope", ""},
      {"a" + kIdA, ""},
      {kIdA + "0", ""},
      {kIdA + ".service", ""},
      {"x" + kIdA.substr(1), ""},
      {std::string(32, 'e'), ""},
      {std::string(32, 'e') + "-", ""},
      {"nginx.service", ""},
      {"", ""},
  };
  for (const auto& [name, id] : cases) EXPECT_EQ(ContainerIdOf(name), id) << name;
}

TEST_F(CgroupLookup, FindsAContainerByIdOrPrefix) {
  const std::string path = "cpu/kubepods.slice/pod1.slice/cri-containerd-" + kIdA + ".scope";
  Cgroup(path);
  for (const std::string& id : {kIdA, kIdA.substr(0, 12)}) {
    const Result<CgroupTarget> target = Container(id);
    ASSERT_TRUE(target.has_value()) << target.error().message();
    EXPECT_EQ(target->path, Mount(path));
    EXPECT_EQ(target->controller, "cpu");
  }
}

TEST_F(CgroupLookup, FindsATaskOfEcs) {
  Cgroup("unified/ecs/" + kEcsId);
  EXPECT_TRUE(Container(kEcsId).has_value());
}

TEST_F(CgroupLookup, TakesTheOutermostCgroupOfAContainer) {
  Cgroup("unified/machine.slice/libpod-" + kIdA + ".scope/container/" + kIdA);
  EXPECT_EQ(Container(kIdA)->path, Mount("unified/machine.slice/libpod-" + kIdA + ".scope"));
}

TEST_F(CgroupLookup, FindsAContainerInsideAContainer) {
  Cgroup("unified/docker/" + kIdA + "/kubelet/" + kIdB);
  EXPECT_EQ(Container(kIdB)->path, Mount("unified/docker/" + kIdA + "/kubelet/" + kIdB));
}

TEST_F(CgroupLookup, RefusesAPrefixOfSeveralContainers) {
  Cgroup("unified/docker/" + kIdA);
  Cgroup("unified/docker/" + kIdB);
  const Result<CgroupTarget> target = Container(kIdA.substr(0, 12));
  ASSERT_FALSE(target.has_value());
  EXPECT_EQ(target.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(target.error().message(), HasSubstr(kIdA));
  EXPECT_THAT(target.error().message(), HasSubstr(kIdB));
}

TEST_F(CgroupLookup, DoesNotFindAContainerThatIsGone) {
  EXPECT_EQ(Container(kIdA).error().code(), ErrorCode::kNotFound);
}

TEST_F(CgroupLookup, DoesNotLeaveTheHierarchyThroughLinks) {
  tree_.Directory("elsewhere/" + kIdA);
  tree_.Link("cgroup/unified/link", tree_.Path("elsewhere"));
  EXPECT_EQ(Container(kIdA).error().code(), ErrorCode::kNotFound);
}

// The kernel's own word for the id of a cgroup is in the file handle of its directory.
TEST(CgroupLookupLive, GivesTheIdThatTheKernelUses) {
  const Result<std::vector<CgroupMount>> mounts = ReadCgroupMounts(Procfs{});
  if (!mounts || mounts->empty()) GTEST_SKIP() << "no cgroups are mounted here";
  for (const CgroupMount& mount : *mounts) {
    if (mount.IsNamed()) continue;
    const Result<CgroupTarget> target = FindCgroup(Procfs{}, mount.path);
    ASSERT_TRUE(target.has_value()) << target.error().message();
    EXPECT_EQ(target->v2, mount.v2) << mount.path;
    alignas(file_handle) char buffer[sizeof(file_handle) + sizeof(uint64_t)] = {};
    auto* const handle = reinterpret_cast<file_handle*>(buffer);
    handle->handle_bytes = sizeof(uint64_t);
    int mount_id = 0;
    ASSERT_EQ(name_to_handle_at(AT_FDCWD, target->path.c_str(), handle, &mount_id, 0), 0);
    uint64_t id = 0;
    std::memcpy(&id, handle->f_handle, sizeof(id));
    EXPECT_EQ(target->id, id) << mount.path;
  }
}

TEST_F(CgroupLookup, ListsContainersOfTheFirstHierarchyThatHasAny) {
  Cgroup("cpu/kubepods/" + kIdA + "/init.scope");
  Cgroup("cpu/kubepods/" + kIdB);
  Cgroup("blkio/docker/" + kEcsId);
  const auto cgroups = ListContainerCgroups(tree_.AsProcfs());
  ASSERT_TRUE(cgroups.has_value());
  ASSERT_EQ(cgroups->size(), 2U);
  EXPECT_EQ(cgroups->at(kIdA).path, Mount("cpu/kubepods/" + kIdA));
  EXPECT_EQ(cgroups->at(kIdB).controller, "cpu");
}

TEST_F(CgroupLookup, ListsNoContainersOfAHierarchyThatCannotBeUsed) {
  Cgroup("systemd/docker/" + kIdA);
  EXPECT_TRUE(ListContainerCgroups(tree_.AsProcfs())->empty());
}

TEST_F(CgroupLookup, KnowsThePodsCgroupByItsUid) {
  const std::string uid = "0b59-ab";
  const auto pod_of = [&](const std::string& container) {
    Cgroup("unified/" + container);
    const auto pod = PodCgroupOf(*Find(container), uid);
    return pod ? pod->path.substr(Mount("unified/").size()) : "";
  };
  EXPECT_EQ(pod_of("kubepods/burstable/pod0b59-ab/" + kIdA), "kubepods/burstable/pod0b59-ab");
  EXPECT_EQ(pod_of("kubepods-pod0b59_ab.slice/cri-containerd-" + kIdA + ".scope"),
            "kubepods-pod0b59_ab.slice");
  EXPECT_EQ(pod_of("kubepods/pod0b59/" + kIdA), "") << "another pod's";
  EXPECT_EQ(pod_of("pod0b59-ab/nested/" + kIdA), "") << "not right above";
  EXPECT_FALSE(PodCgroupOf(*Find("kubepods/pod0b59/" + kIdA), ""));
}

}  // namespace
}  // namespace pyrometer
