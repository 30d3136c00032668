// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_identity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace pyrometer {
namespace {

const std::string kId(64, 'a');
const std::string kOuter(64, 'b');
const std::string kTask = std::string(32, 'c') + "-1234567890";
constexpr std::string_view kUid = "2f1f4a8e-1d2c-4b5a-9f00-0123456789ab";
constexpr std::string_view kUid_ = "2f1f4a8e_1d2c_4b5a_9f00_0123456789ab";

struct Case {
  std::string path;
  std::string container;
};

// As the runtimes write them, by their cgroup driver.
std::vector<Case> Containers() {
  const auto pod_slice = [](std::string_view qos) {
    return fmt::format("/kubepods.slice/kubepods-{0}.slice/kubepods-{0}-pod{1}.slice", qos, kUid_);
  };
  const std::string guaranteed = fmt::format("/kubepods.slice/kubepods-pod{}.slice", kUid_);
  return {
      // Docker
      {"/docker/" + kId, kId},
      {"/system.slice/docker-" + kId + ".scope", kId},
      {"/docker/" + kOuter + "/docker/" + kId, kId},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + kId + ".scope", kId},
      {"/system.slice/docker.service/docker/" + kId, kId},
      {"/docker/buildkit/" + kId, kId},
      {"/system.slice/docker-" + kId + ".scope/init.scope", kId},
      {"/docker/" + kId + "/system.slice/nginx.service", kId},
      // Kubernetes, systemd's driver
      {pod_slice("burstable") + "/cri-containerd-" + kId + ".scope", kId},
      {pod_slice("besteffort") + "/cri-containerd-" + kId + ".scope", kId},
      {guaranteed + "/cri-containerd-" + kId + ".scope", kId},
      {guaranteed + "/docker-" + kId + ".scope", kId},
      {pod_slice("burstable") + "/crio-" + kId + ".scope", kId},
      {pod_slice("burstable") + "/crio-" + kId + ".scope/container", kId},
      {pod_slice("burstable") + "/crio-" + kId + ".scope/system.slice/x.service", kId},
      // Kubernetes, cgroupfs
      {fmt::format("/kubepods/burstable/pod{}/{}", kUid, kId), kId},
      {fmt::format("/kubepods/besteffort/pod{}/{}", kUid, kId), kId},
      {fmt::format("/kubepods/pod{}/{}", kUid, kId), kId},
      {fmt::format("/kubepods/pod{}/crio-{}", kUid, kId), kId},
      {fmt::format("/k3s/kubepods/burstable/pod{}/{}", kUid, kId), kId},
      {fmt::format("/kubepods/burstable/pod{}/{}/child", kUid, kId), kId},
      {fmt::format("/kubepods/pod{}/{}", std::string(32, 'd'), kId), kId},  // a static pod's
      // containerd with the other driver
      {fmt::format("/system.slice/containerd.service/kubepods-burstable-pod{}.slice:"
                   "cri-containerd:{}",
                   kUid_, kId),
       kId},
      {"/default/" + kId, kId},  // ctr
      {"/system.slice/nerdctl-" + kId + ".scope", kId},
      // Podman
      {"/machine.slice/libpod-" + kId + ".scope", kId},
      {"/machine.slice/libpod-" + kId + ".scope/container", kId},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId +
           ".scope/container",
       kId},
      {"/libpod_parent/libpod-" + kId, kId},
      // kind: on the host, and in its node
      {"/docker/" + kOuter + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
           std::string(kUid_) + ".slice/cri-containerd-" + kId + ".scope",
       kId},
      {"/system.slice/docker-" + kOuter + ".scope/kubelet/kubepods/pod" + std::string(kUid) + "/" +
           kId,
       kId},
      {"/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" + kId + ".scope", kId},
      // From inside another cgroup namespace
      {"/../../kubepods-burstable.slice/docker-" + kId + ".scope", kId},
      {"/../" + kId, kId},
      // ECS, and Fargate's task ids
      {"/ecs/0123456789abcdef/" + kId, kId},
      {"/ecs/cluster/" + kTask, kTask},
      {"/ecs/" + kTask + "/" + kTask, kTask},
  };
}

TEST(CgroupIdentity, FindsTheContainer) {
  for (const auto& [path, id] : Containers()) {
    EXPECT_EQ(IdentityOf(path), (CgroupIdentity{.container_id = id, .systemd_unit = ""})) << path;
  }
}

TEST(CgroupIdentity, FindsThePod) {
  const std::string uid(kUid);
  const std::string digest(32, 'd');
  const std::string slice = fmt::format("pod{}.slice", kUid_);
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" + slice + "/crio-" + kId +
           ".scope",
       uid, "Burstable"},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" + slice, uid, "BestEffort"},
      {"/kubepods.slice/kubepods-" + slice + "/docker-" + kId + ".scope", uid, "Guaranteed"},
      {"/kubepods/burstable/pod" + uid + "/" + kId, uid, "Burstable"},
      {"/kubepods/besteffort/pod" + uid + "/" + kId + "/child", uid, "BestEffort"},
      {"/kubepods/pod" + uid + "/crio-" + kId, uid, "Guaranteed"},
      {"/kubepods/pod" + digest + "/" + kId, digest, "Guaranteed"},
      {"/system.slice/containerd.service/kubepods-burstable-" + slice + ":cri-containerd:" + kId,
       uid, "Burstable"},
      {"/docker/" + kOuter +
           "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
           "kubelet-kubepods-besteffort-" +
           slice + "/cri-containerd-" + kId + ".scope",
       uid, "BestEffort"},
      {"/kubepods/burstable/pod" + digest + "/" + kOuter + "/kubepods/pod" + uid + "/" + kId, uid,
       "Guaranteed"},
      {"/docker/" + kId, "", ""},
      {"/kubepods/pod/" + kId, "", ""},
      {"/kubepods/pod" + uid + "0/" + kId, "", ""},
      {"/xpod" + uid + "/" + kId, "", ""},
      {"/pod2f1f4a8e-1d2c-4b5a-9f00-0123456789aX/" + kId, "", ""},
      {"", "", ""},
  };
  for (const auto& [path, pod, qos] : cases) {
    EXPECT_EQ(PodOf(path), (CgroupPod{.uid = pod, .qos = qos})) << path;
  }
}

TEST(CgroupIdentity, FindsTheUnit) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/nginx.service/worker", "nginx.service"},
      {"/system.slice/system-postgresql.slice/postgresql@15-main.service",
       "postgresql@15-main.service"},
      {R"(/system.slice/systemd-fsck@dev-disk-by\x2duuid.service)",
       R"(systemd-fsck@dev-disk-by\x2duuid.service)"},
      {"/user.slice/user-1000.slice/session-3.scope", "user-1000.slice"},
      {"/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service", "dbus.service"},
      {"/system.slice/run-r0123.scope", "system.slice"},
      // Podman's and CRI-O's monitors are no part of their container.
      {"/machine.slice/libpod-conmon-" + kId + ".scope", "machine.slice"},
      {"/system.slice/crio-conmon-" + kId + ".scope", "system.slice"},
      {"/init.scope", ""},
      {"/", ""},
      {"", ""},
      {"/.service", ""},
      {"/system.slice/" + std::string(63, 'a'), "system.slice"},
      {"/system.slice/" + std::string(65, 'a'), "system.slice"},
      {"/x" + kId, ""},
  };
  for (const auto& [path, unit] : cases) {
    EXPECT_EQ(IdentityOf(path), (CgroupIdentity{.container_id = "", .systemd_unit = unit})) << path;
  }
}

TEST(TellingCgroup, IsTheOnlyOneOfVersion2) {
  EXPECT_EQ(TellingCgroup("0::/system.slice/nginx.service\n"), "/system.slice/nginx.service");
  EXPECT_EQ(TellingCgroup("0::/\n"), "/");
}

TEST(TellingCgroup, IsThatOfSystemdBesideVersion1) {
  EXPECT_EQ(TellingCgroup("12:cpu,cpuacct:/\n5:memory:/x\n1:name=systemd:/system.slice/a.service\n"
                          "0::/\n"),
            "/system.slice/a.service");
}

TEST(TellingCgroup, PrefersOneThatNamesAContainer) {
  const std::string text = "12:pids:/docker/" + kId + "\n4:cpu,cpuacct:/docker/" + kId +
                           "/inner\n1:name=systemd:/\n0::/system.slice/docker.service\n";
  EXPECT_EQ(TellingCgroup(text), "/docker/" + kId + "/inner");
}

TEST(TellingCgroup, TakesAPathWithColons) {
  const std::string path = "/system.slice/x.slice:cri-containerd:" + kId;
  EXPECT_EQ(TellingCgroup("0::" + path + "\n"), path);
}

TEST(TellingCgroup, PassesOverWhatIsNoLine) {
  EXPECT_EQ(TellingCgroup(""), "");
  EXPECT_EQ(TellingCgroup("nonsense\n3:cpu\n"), "");
}

TEST(Version2Cgroup, IsThatWithoutControllers) {
  EXPECT_EQ(Version2Cgroup("4:cpu:/docker/x\n1:name=systemd:/b\n0::/a.slice/b\n"), "/a.slice/b");
  EXPECT_EQ(Version2Cgroup("4:cpu:/docker/x\n"), "");
}

TEST(SliceOf, IsTheInnermostSlice) {
  EXPECT_EQ(SliceOf("/user.slice/user-1000.slice/session-3.scope"), "user-1000.slice");
  EXPECT_EQ(SliceOf("/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope"),
            "kubepods-pod1.slice");
  EXPECT_EQ(SliceOf("/docker/" + kId), "");
  EXPECT_EQ(SliceOf("/.slice"), "");
}

TEST(ServiceOfUnit, IsTheUnitWithoutItsKind) {
  EXPECT_EQ(ServiceOfUnit("nginx.service"), "nginx");
  EXPECT_EQ(ServiceOfUnit("postgresql@15-main.service"), "postgresql@15-main");
  EXPECT_EQ(ServiceOfUnit("user@1000.service"), "");
  EXPECT_EQ(ServiceOfUnit("user-1000.slice"), "");
  EXPECT_EQ(ServiceOfUnit(""), "");
}

}  // namespace
}  // namespace pyrometer
