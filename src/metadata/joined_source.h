// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "metadata/absent_sources.h"
#include "metadata/container_source.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Several sources as one that has the containers of all, since a machine may have Kubernetes' and
// Docker's. What the first says of a container counts. Those that are AbsentSources are left out.
// One that is there and fails is waited for, unless one before it has containers: then it is left
// alone for a while, since what hangs would hold up the others. A Docker that is not there costs
// 6 us (measured 2026-11), where a listing takes milliseconds. One thread at a time calls List().
class JoinedSource final : public ContainerSource {
 public:
  // `pause`: so long one that failed is left alone. REQUIRES: one source at least.
  explicit JoinedSource(std::vector<std::unique_ptr<ContainerSource>> sources,
                        std::chrono::nanoseconds pause = std::chrono::minutes(1))
      : pause_(pause) {
    for (auto& source : sources) members_.push_back({.source = std::move(source)});
  }

  Result<std::vector<ContainerMetadata>> List() override {
    std::vector<ContainerMetadata> all;
    AbsentSources absent;
    bool answered = false;
    for (Member& member : members_) {
      if (!all.empty() && MonotonicNow() < member.not_before) continue;
      Result<std::vector<ContainerMetadata>> list = member.source->List();
      if (list) {
        answered = true;
        Add(*std::move(list), all);
      } else if (!absent.Take(list.error())) {
        if (all.empty()) return list;
        member.not_before = After(MonotonicNow(), pause_);
      }
    }
    if (!answered) return std::move(absent).Why();
    return all;
  }

  void Cancel() override {
    for (const Member& member : members_) member.source->Cancel();
  }

  void TellChanges(const std::function<void()>& changed) override {
    for (const Member& member : members_) member.source->TellChanges(changed);
  }

 private:
  struct Member {
    std::unique_ptr<ContainerSource> source;
    MonotonicTime not_before{};
  };

  // Those of `more` whose ids `all` lacks.
  static void Add(std::vector<ContainerMetadata> more, std::vector<ContainerMetadata>& all) {
    if (all.empty()) {
      all = std::move(more);
      return;
    }
    if (more.empty()) return;
    std::set<std::string> known;
    for (const ContainerMetadata& container : all) known.insert(container.id);
    for (ContainerMetadata& container : more) {
      if (!known.contains(container.id)) all.push_back(std::move(container));
    }
  }

  const std::chrono::nanoseconds pause_;
  std::vector<Member> members_;
};

}  // namespace pyrometer
