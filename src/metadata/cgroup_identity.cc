// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_identity.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "metadata/cgroup_lookup.h"

namespace pyrometer {
namespace {

constexpr std::string_view kService = ".service";
constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kUserManager = "user@";

// A line of /proc/PID/cgroup: "0::/system.slice/nginx.service", "4:cpu,cpuacct:/docker/<id>".
struct Membership {
  std::string_view controllers;  // "" of version 2
  std::string_view path;

  bool IsV2() const { return controllers.empty(); }
};

std::vector<Membership> ParseMemberships(std::string_view text) {
  std::vector<Membership> memberships;
  for (const std::string_view line : Split(text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    memberships.push_back({.controllers = line.substr(first + 1, second - first - 1),
                           .path = line.substr(second + 1)});
  }
  return memberships;
}

// Its place among those that are asked. All runtimes put containers into version 2's hierarchy,
// systemd's own or the one of `cpu`; what is the root in one of them says nothing there.
int AskedAt(const Membership& membership) {
  if (membership.path == "/") return 4;
  if (membership.IsV2()) return 0;
  if (membership.controllers == "name=systemd") return 1;
  const std::vector<std::string_view> controllers = Split(membership.controllers, ',');
  return std::ranges::find(controllers, "cpu") != controllers.end() ? 2 : 3;
}

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A UUID; of a static pod, the digest of its manifest.
bool IsPodUid(std::string_view text) {
  constexpr size_t kDigest = 32;
  constexpr size_t kUuid = 36;
  if (text.size() == kDigest) return IsHex(text);
  if (text.size() != kUuid) return false;
  for (size_t i = 0; i < kUuid; ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !IsHex(text.substr(i, 1))) return false;
  }
  return true;
}

// In "pod<uid>" and "kubepods-burstable-pod<uid, '_' for '-'>.slice". "" if there is none.
std::string PodUidIn(std::string_view name) {
  constexpr std::string_view kPod = "pod";
  if (name.ends_with(kSlice)) name.remove_suffix(kSlice.size());
  const size_t at = name.rfind(kPod);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '-')) return "";
  std::string uid(name.substr(at + kPod.size()));
  std::ranges::replace(uid, '_', '-');
  return IsPodUid(uid) ? uid : "";
}

// Guaranteed pods have no cgroup of their class above them.
std::string_view QosOf(std::string_view above, std::string_view pod) {
  const auto says = [&](std::string_view qos) {
    return above == qos || pod.find(qos) != std::string_view::npos;
  };
  if (says("burstable")) return "Burstable";
  return says("besteffort") ? "BestEffort" : "Guaranteed";
}

}  // namespace

CgroupIdentity IdentityOf(std::string_view path) {
  CgroupIdentity identity;
  std::string_view service;
  for (const std::string_view name : Split(path, '/')) {
    if (const std::string_view id = ContainerIdOf(name); !id.empty()) identity.container_id = id;
    if (name.size() > kService.size() && name.ends_with(kService)) service = name;
  }
  // A container's units are not the machine's.
  if (identity.container_id.empty()) {
    identity.systemd_unit = service.empty() ? SliceOf(path) : service;
  }
  return identity;
}

CgroupPod PodOf(std::string_view path) {
  CgroupPod pod;
  std::string_view above;  // "burstable" with cgroupfs
  for (const std::string_view component : Split(path, '/')) {
    // With the drivers mixed up the container's name follows:
    // "...-pod<uid>.slice:cri-containerd:<id>".
    const std::string_view name = component.substr(0, component.find(':'));
    if (std::string uid = PodUidIn(name); !uid.empty()) {
      pod = {.uid = std::move(uid), .qos = QosOf(above, name)};
    }
    above = name;
  }
  return pod;
}

std::string_view SliceOf(std::string_view path) {
  std::string_view slice;
  for (const std::string_view name : Split(path, '/')) {
    if (name.size() > kSlice.size() && name.ends_with(kSlice)) slice = name;
  }
  return slice;
}

std::string_view TellingCgroup(std::string_view text) {
  std::vector<Membership> memberships = ParseMemberships(text);
  if (memberships.empty()) return {};
  std::ranges::stable_sort(memberships, {}, AskedAt);
  const auto container = std::ranges::find_if(memberships, [](const Membership& membership) {
    return !IdentityOf(membership.path).container_id.empty();
  });
  return container != memberships.end() ? container->path : memberships.front().path;
}

std::string_view Version2Cgroup(std::string_view text) {
  const std::vector<Membership> memberships = ParseMemberships(text);
  const auto version2 = std::ranges::find_if(memberships, &Membership::IsV2);
  return version2 == memberships.end() ? std::string_view() : version2->path;
}

std::string_view ServiceOfUnit(std::string_view unit) {
  if (!unit.ends_with(kService) || unit.starts_with(kUserManager)) return {};
  return unit.substr(0, unit.size() - kService.size());
}

}  // namespace pyrometer
