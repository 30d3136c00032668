// SPDX-License-Identifier: Apache-2.0
#include "metadata/node_labels.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/await_until.h"
#include "base/printable.h"
#include "metadata/bounded_json.h"
#include "metadata/container_meta_labels.h"

namespace pyrometer {
namespace {

// Images and the like are most of a node.
bool IsWanted(int depth, std::string_view key) {
  return !(depth == 1 && (key == "status" || key == "spec")) &&
         !(depth == 2 && (key == "managedFields" || key == "annotations"));
}

}  // namespace

NodeLabels::NodeLabels(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      http_(options_.endpoint),
      thread_([this] { Run(); }) {}

NodeLabels::~NodeLabels() {
  http_.Cancel();
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

std::optional<Labels> NodeLabels::Get() const {
  const absl::MutexLock lock(&mutex_);
  return labels_;
}

void NodeLabels::Run() {
  ::pthread_setname_np(::pthread_self(), "node-labels");
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  bool failed = false;
  for (std::chrono::milliseconds pause = options_.pause;;
       pause = std::min(2 * pause, options_.longest_pause)) {
    Result<Labels> labels = Ask();
    const absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (options_.told && (!labels || failed)) options_.told(labels ? nullptr : &labels.error());
    if (labels) {
      labels_ = *std::move(labels);
      return;
    }
    failed = true;
    // So that the agents of a cluster do not come together.
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(pause * spread(random_));
    AwaitUntil(mutex_, clock_, After(clock_.Now(), time),
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
  }
}

Result<Labels> NodeLabels::Ask() {
  ASSIGN_OR_RETURN(const HttpResponse response,
                   http_.Get("/api/v1/nodes/" + InQuery(options_.node_name), {}));
  if (response.status != HttpResponse::kOk) {
    return ErrorOf(response, fmt::format("{}: reading the node {} (needs 'get' on nodes)",
                                         options_.endpoint.url, options_.node_name));
  }
  Result<Labels> labels = ReadNodeLabels(response.body, options_.wanted);
  if (!labels) return std::move(labels).error().With(options_.endpoint.url);
  return labels;
}

Result<Labels> ReadNodeLabels(std::string_view json, const std::vector<std::string>& wanted) {
  const nlohmann::json node = ParseJson(json, IsWanted);
  if (TextAt(node, "kind") != "Node") {
    return Fail(ErrorCode::kMalformed, "the answer is no node");
  }
  const std::map<std::string, std::string> all = TextsAt(At(node, "metadata"), "labels");
  std::map<std::string, std::string> found;
  for (const std::string& key : wanted) {
    const auto label = all.find(key);
    if (label == all.end() || label->second.empty()) continue;
    found.emplace(LabelNameOf(key), Printable(label->second));
  }
  return Labels(found.begin(), found.end());
}

}  // namespace pyrometer
