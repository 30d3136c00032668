// SPDX-License-Identifier: Apache-2.0
#include "agent/label_outcomes.h"

#include <utility>

namespace pyrometer {

void LabelOutcomes::SetRules(Relabeling rules) {
  rules_ = std::move(rules);
  kept_.clear();
}

LabelOutcomes::Outcome LabelOutcomes::Of(const LabelSet& captured, Patience patience) {
  using Answer = ContainerDirectory::Answer;
  const auto [at, is_new] = kept_.try_emplace(captured.get());
  Kept& kept = at->second;
  const bool has_outcome = !is_new && !kept.of.expired();
  Answer answer;
  const std::string_view container = ValueIn(*captured, kMetaContainerId);
  if (containers_ != nullptr && !container.empty()) answer = containers_->Find(container);
  if (answer.metadata == nullptr && has_outcome) answer.metadata = kept.container;
  if (answer.metadata == nullptr && answer.state == Answer::State::kAwaited &&
      patience == Patience::kWaits) {
    if (!has_outcome) kept_.erase(at);
    return {.state = State::kAwaited};
  }
  if (!has_outcome || kept.container != answer.metadata) {
    kept = {.of = captured,
            .container = answer.metadata,
            .outcome = Make(*captured, answer.metadata.get())};
  }
  return kept.outcome;
}

LabelOutcomes::Outcome LabelOutcomes::Make(const Labels& captured,
                                           const ContainerMetadata* container) {
  RuledLabels ruled = ApplyRules(rules_, captured, container);
  if (!ruled.labels) return {.state = State::kDropped, .drops_cgroup = ruled.drops_cgroup};
  return {.state = State::kReady,
          .labels = sets_.Share(*std::move(ruled.labels)),
          .is_nameless = container == nullptr && !ValueIn(captured, kMetaContainerId).empty()};
}

void LabelOutcomes::Forget() {
  absl::erase_if(kept_, [](const auto& kept) { return kept.second.of.expired(); });
}

}  // namespace pyrometer
