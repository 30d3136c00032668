// SPDX-License-Identifier: Apache-2.0
#include "record/container_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Two pods of a namespace with two containers each and a sandbox, one of another, one of Docker's.
class ContainerTargets : public testing::Test {
 protected:
  ContainerTargets() {
    AddPod("web-0", "shop", "kubepods/podu-web/", "u-web", {"app", "proxy"});
    AddPod("db-0", "shop", "kubepods-pod_of_no_uid.slice/", "u-db", {"app", "backup"});
    AddPod("web-0", "test", "kubepods.slice/kubepods-podu_test.slice/", "u-test", {"app"});
    Add("redis", std::make_shared<const PodMetadata>(), "docker/");
    listed_.push_back({.id = "ended", .name = "ended", .pod = listed_.front().pod});
  }

  void AddPod(const std::string& name, const std::string& space, const std::string& cgroup,
              const std::string& uid, const std::vector<std::string>& containers) {
    auto pod = std::make_shared<const PodMetadata>(
        PodMetadata{.name = name, .name_space = space, .uid = uid});
    Add("", pod, cgroup);
    for (const std::string& container : containers) Add(container, pod, cgroup);
  }
  void Add(const std::string& name, std::shared_ptr<const PodMetadata> pod,
           const std::string& cgroup) {
    const std::string id = std::to_string(listed_.size());
    tree_.Directory(cgroup + id);
    cgroups_[id] = {tree_.Path(cgroup + id), 1000 + listed_.size(), true, ""};
    listed_.push_back({.id = id, .name = name, .pod = std::move(pod)});
  }

  // Paths below the tree.
  std::vector<std::string> Of(const ContainerNames& names) {
    std::vector<std::string> paths;
    for (const CgroupTarget& cgroup : CgroupsOf(names, listed_, cgroups_)) {
      paths.push_back(cgroup.path.substr(tree_.Path("").size()));
    }
    return paths;
  }
  std::string WhyNot(const ContainerNames& names) {
    EXPECT_THAT(Of(names), IsEmpty());
    return NoCgroupOf(names, listed_).message();
  }

  TemporaryTree tree_;
  std::vector<ContainerMetadata> listed_;
  std::map<std::string, CgroupTarget> cgroups_;
};

TEST_F(ContainerTargets, AreThePodsCgroupsWhereTheyHaveOne) {
  EXPECT_THAT(Of({.pods = {"web-0"}}),
              UnorderedElementsAre("kubepods/podu-web", "kubepods.slice/kubepods-podu_test.slice"));
  EXPECT_THAT(Of({.pods = {"db-0"}}), UnorderedElementsAre("kubepods-pod_of_no_uid.slice/3",
                                                           "kubepods-pod_of_no_uid.slice/4",
                                                           "kubepods-pod_of_no_uid.slice/5"));
}

TEST_F(ContainerTargets, MatchOneOfEachKindOfName) {
  EXPECT_THAT(Of({.pods = {"web-0"}, .namespaces = {"shop"}}), ElementsAre("kubepods/podu-web"));
  EXPECT_THAT(Of({.containers = {"app"}, .namespaces = {"shop"}}),
              UnorderedElementsAre("kubepods/podu-web/1", "kubepods-pod_of_no_uid.slice/4"));
  EXPECT_THAT(
      Of({.containers = {"app", "proxy"}, .pods = {"web-0", "db-0"}, .namespaces = {"shop"}}),
      UnorderedElementsAre("kubepods/podu-web/1", "kubepods/podu-web/2",
                           "kubepods-pod_of_no_uid.slice/4"));
  EXPECT_THAT(Of({.containers = {"redis"}}), ElementsAre("docker/8"));
}

TEST_F(ContainerTargets, SayWhatThereIsInstead) {
  EXPECT_EQ(WhyNot({.pods = {"web-1"}}),
            "--pod web-1: no such container runs on this machine; did you mean 'web-0'?");
  EXPECT_THAT(WhyNot({.containers = {"app"}, .namespaces = {"production"}}),
              HasSubstr("--namespace production --container app: no such container runs on this "
                        "machine; there are the namespaces shop, test"));
  EXPECT_THAT(WhyNot({.containers = {"redis"}, .pods = {"db-0"}}),
              HasSubstr("none has all of these names"));
  EXPECT_THAT(WhyNot({.containers = {"ended"}}), HasSubstr("it has no processes now"));
  listed_.clear();
  EXPECT_THAT(WhyNot({.pods = {"web-0"}}), HasSubstr("there are no pods"));
}

TEST_F(ContainerTargets, ShowFewOfManyNames) {
  for (int i = 0; i < 20; ++i) Add("c" + std::to_string(100 + i), listed_.front().pod, "kubepods/");
  EXPECT_THAT(WhyNot({.containers = {"something"}}),
              HasSubstr("there are the containers app, backup, c100, c101, c102, c103, c104, c105 "
                        "and 17 more"));
}

}  // namespace
}  // namespace pyrometer
