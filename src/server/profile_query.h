// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The names and values after the `?` of a request, decoded, in their order.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

// Those of a request's target: "/debug/pprof/profile?label=pod=web&seconds=5". A value reaches from
// the first `=` to the next `&`, so a label needs no escapes; %41 and + are decoded.
QueryParameters ParseQuery(std::string_view target);

// What a client of /debug/pprof/profile wants, or one of /flamegraph, for which `duration` reaches
// back from now. Of each kind that is not empty, a sample must match
// one; labels of different names are of different kinds.
struct ProfileQuery {
  std::chrono::seconds duration{30};
  std::vector<Pid> pids;
  std::vector<std::string> comms;                          // names of processes, whole
  std::map<std::string, std::vector<std::string>> labels;  // the values wanted, by name

  bool Everything() const { return pids.empty() && comms.empty() && labels.empty(); }
};

inline constexpr std::chrono::seconds kMaxProfileDuration{600};
inline constexpr std::chrono::seconds kMaxFlameGraphSpan{3600};

// Reads `seconds=N` (1 to 600; the first one counts, as Parca sends two), `pid=N`, `comm=NAME` and
// `label=NAME=VALUE`, which may be repeated. Ignores parameters of other names, such as those of
// Go's own profiler. Errors: kInvalid.
Result<ProfileQuery> ParseProfileQuery(const QueryParameters& parameters);

// The same for /flamegraph: `seconds` from 1 to 3600, 300 if there is none. A parameter without a
// value is as if it was not there, as forms send them. Errors: kInvalid.
Result<ProfileQuery> ParseFlameGraphQuery(QueryParameters parameters);

// Reads the `pid=N` of /explain. Errors: kInvalid.
Result<Pid> ParsePid(const QueryParameters& parameters);

// Which samples `query` wants, for people: "namespace=shop or test, pod=web-0, process nginx". ""
// if all.
std::string InWords(const ProfileQuery& query);

// Whether the query wants `sample` of a profile with the labels `common`.
bool Matches(const ProfileQuery& query, const ProfileSample& sample, const Labels& common);

}  // namespace pyrometer
