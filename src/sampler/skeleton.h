// SPDX-License-Identifier: Apache-2.0
// What libbpf hands out, owned.
#pragma once

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include "base/system_error.h"
#include "pyrometer/result.h"
#include "sampler.skel.h"

namespace pyrometer {

struct SkeletonDeleter {
  void operator()(sampler_bpf* skeleton) const { sampler_bpf__destroy(skeleton); }
};
struct LinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using UniqueSkeleton = std::unique_ptr<sampler_bpf, SkeletonDeleter>;
// Dies before the skeleton.
using UniqueLink = std::unique_ptr<bpf_link, LinkDeleter>;

inline Result<UniqueLink> Attach(const bpf_program* program) {
  UniqueLink link(bpf_program__attach(program));
  if (link) return link;
  return SystemError(errno, fmt::format("attaching {}", bpf_program__name(program)));
}

}  // namespace pyrometer
