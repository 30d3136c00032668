// SPDX-License-Identifier: Apache-2.0
#include "record/container_targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/printable.h"
#include "config/closest_name.h"

namespace pyrometer {
namespace {

using Texts = std::vector<std::string>;

bool Allows(const Texts& names, std::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

// As it was typed: "--pod web --namespace shop".
std::string Told(const ContainerNames& names) {
  Texts words;
  for (const std::string& pod : names.pods) words.push_back("--pod " + pod);
  for (const std::string& space : names.namespaces) words.push_back("--namespace " + space);
  for (const std::string& container : names.containers) words.push_back("--container " + container);
  return fmt::format("{}", fmt::join(words, " "));
}

// One of the three things by which a container is asked for.
struct Kind {
  const char* plural;
  const Texts ContainerNames::*asked;
  const std::string& (*of)(const ContainerMetadata& container);
};

const Kind kKinds[] = {
    {"namespaces", &ContainerNames::namespaces,
     [](const ContainerMetadata& c) -> const std::string& { return c.pod->name_space; }},
    {"pods", &ContainerNames::pods,
     [](const ContainerMetadata& c) -> const std::string& { return c.pod->name; }},
    {"containers", &ContainerNames::containers,
     [](const ContainerMetadata& c) -> const std::string& { return c.name; }},
};

// What there is in the place of the first name that nothing has; "" if each is somebody's.
std::string Instead(const ContainerNames& names, std::span<const ContainerMetadata> listed) {
  constexpr size_t kShown = 8;
  for (const Kind& kind : kKinds) {
    std::set<std::string> there;
    for (const ContainerMetadata& container : listed) {
      if (!kind.of(container).empty()) there.insert(Printable(kind.of(container)));
    }
    for (const std::string& name : names.*kind.asked) {
      if (there.contains(name)) continue;
      if (there.empty()) return fmt::format("there are no {}", kind.plural);
      const Texts all(there.begin(), there.end());
      const std::optional<std::string> closest = ClosestName(name, all);
      if (closest) return fmt::format("did you mean '{}'?", *closest);
      const size_t shown = std::min(kShown, all.size());
      const std::string more =
          all.size() > shown ? fmt::format(" and {} more", all.size() - shown) : "";
      return fmt::format(
          "there are the {} {}{}", kind.plural,
          fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "), more);
    }
  }
  return "";
}

}  // namespace

bool IsMeant(const ContainerNames& names, const ContainerMetadata& container) {
  return Allows(names.namespaces, container.pod->name_space) &&
         Allows(names.pods, container.pod->name) && Allows(names.containers, container.name);
}

std::vector<CgroupTarget> CgroupsOf(const ContainerNames& names,
                                    std::span<const ContainerMetadata> listed,
                                    const std::map<std::string, CgroupTarget>& cgroups) {
  std::map<uint64_t, CgroupTarget> targets;  // by id
  for (const ContainerMetadata& container : listed) {
    const auto found = cgroups.find(container.id);
    if (found == cgroups.end() || !IsMeant(names, container)) continue;
    std::optional<CgroupTarget> pod;
    if (names.containers.empty()) pod = PodCgroupOf(found->second, container.pod->uid);
    const CgroupTarget& target = pod ? *pod : found->second;
    targets.emplace(target.id, target);
  }
  std::vector<CgroupTarget> all;
  all.reserve(targets.size());
  for (auto& [id, target] : targets) all.push_back(std::move(target));
  return all;
}

Error NoCgroupOf(const ContainerNames& names, std::span<const ContainerMetadata> listed) {
  const bool any =
      std::ranges::any_of(listed, [&](const ContainerMetadata& c) { return IsMeant(names, c); });
  std::string why = any ? "it has no processes now" : Instead(names, listed);
  if (why.empty()) why = "none has all of these names";
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no such container runs on this machine; {}", Told(names), why));
}

}  // namespace pyrometer
