// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "agent/process_facts.h"
#include "agent/shared_labels.h"
#include "metadata/container_directory.h"
#include "metadata/relabel.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// What becomes of the captured labels of processes: the names of their container come in the place
// of its id, then the rules apply. Once for each distinct set, as long as the rules and what is
// known of the container are the same. Not thread-safe.
class LabelOutcomes {
 public:
  enum class State : uint8_t {
    kReady,
    kAwaited,  // the container is being asked for
    kDropped,
  };
  struct Outcome {
    State state = State::kAwaited;
    LabelSet labels = nullptr;  // if they are ready
    bool drops_cgroup = false;  // see RuledLabels
    bool is_nameless = false;   // its container's names are not known
  };
  // With a container that is being asked for.
  enum class Patience : uint8_t {
    kWaits,
    kGivesUp,  // it is as if nobody knew it
  };

  // At most `sets` come out at a time, `other` in the place of more. `containers` may be null, and
  // outlives this.
  LabelOutcomes(size_t sets, LabelSet other, ContainerDirectory* containers)
      : containers_(containers), sets_(sets, std::move(other)) {}

  void SetRules(Relabeling rules);
  const Relabeling& rules() const { return rules_; }

  Outcome Of(const LabelSet& captured, Patience patience = Patience::kWaits);

  // What is kept for sets that nobody bears any more.
  void Forget();

 private:
  struct Kept {
    std::weak_ptr<const Labels> of;
    std::shared_ptr<const ContainerMetadata> container;  // null: nothing was known of it
    Outcome outcome;
  };

  Outcome Make(const Labels& captured, const ContainerMetadata* container);

  ContainerDirectory* const containers_;
  Relabeling rules_;
  SharedLabels sets_;
  // By the set they are about. That may be gone, and another be where it was: see Kept::of.
  absl::flat_hash_map<const Labels*, Kept> kept_;
};

}  // namespace pyrometer
