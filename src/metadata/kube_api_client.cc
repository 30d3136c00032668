// SPDX-License-Identifier: Apache-2.0
#include "metadata/kube_api_client.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/await_until.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

constexpr int kGoneStatus = 410;
constexpr size_t kLongestEvent = size_t{4} << 20;  // etcd's objects have at most 1.5 MiB
constexpr size_t kMostPages = 1000;
constexpr uint32_t kMostWatchFailures = 3;  // in a row, until the pods are listed anew
constexpr uint32_t kMostDoublings = 16;     // of a pause

Error Complaint(std::string_view words) {
  return Error(ErrorCode::kIo, fmt::format("watching pods: {}", words));
}

Error TooMany() {
  return Complaint("there are more pods than a node can have");
}

}  // namespace

KubeApiClient::KubeApiClient(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      http_(options_.endpoint),
      thread_([this] { Run(); }) {}

KubeApiClient::~KubeApiClient() {
  Cancel();
  thread_.join();
}

void KubeApiClient::Cancel() {
  http_.Cancel();
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
  changed_ = nullptr;
}

void KubeApiClient::TellChanges(const std::function<void()>& changed) {
  const absl::MutexLock lock(&mutex_);
  if (!stopping_) changed_ = changed;
  if (listed_) Changed();  // it may have been since the last List()
}

Result<std::vector<ContainerMetadata>> KubeApiClient::List() {
  const absl::MutexLock lock(&mutex_);
  const auto has_answer = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return listed_ || error_ || stopping_;
  };
  mutex_.Await(absl::Condition(&has_answer));
  if (error_) return *error_;
  if (!listed_) return Complaint("shutting down");
  std::vector<ContainerMetadata> all;
  for (const auto& [uid, containers] : pods_) {
    all.insert(all.end(), containers.begin(), containers.end());
  }
  return all;
}

void KubeApiClient::Changed() {
  if (changed_) changed_();
}

// One cut watch is nothing to tell; while there is none, new containers stay unknown.
void KubeApiClient::Fail(Error error, uint32_t failures) {
  const absl::MutexLock lock(&mutex_);
  if (listed_ && failures < kMostWatchFailures) return;
  const bool is_news = listed_ && !error_;
  error_ = std::move(error);
  if (is_news) Changed();
}

void KubeApiClient::Recover() {
  const absl::MutexLock lock(&mutex_);
  if (!error_) return;
  error_.reset();
  Changed();
}

// Spread over half as much more or less, so that the agents of a cluster do not come together.
bool KubeApiClient::Pause(uint32_t failures, std::optional<std::chrono::seconds> at_least) {
  const uint32_t doublings = std::min(failures > 0 ? failures - 1 : 0, kMostDoublings);
  const milliseconds pause = std::min(options_.pause * (1U << doublings), options_.longest_pause);
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  milliseconds time(static_cast<int64_t>(static_cast<double>(pause.count()) * spread(random_)));
  if (at_least) time += *at_least;
  const MonotonicTime end = After(clock_.Now(), time);
  const absl::MutexLock lock(&mutex_);
  AwaitUntil(mutex_, clock_, end,
             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  return !stopping_;
}

void KubeApiClient::Run() {
  ::pthread_setname_np(::pthread_self(), "kube-watch");
  bool must_list = true;
  uint32_t failures = 0;
  for (;;) {
    bool progress = false;
    const bool listing = must_list;
    const End end = listing ? ListPods() : Watch(progress);
    if (listing && !end.gone && !end.error) {
      must_list = false;
      continue;  // `failures` stays: a watch that always fails must not list at full speed
    }
    failures = progress ? 1 : failures + 1;
    if (end.gone) {
      must_list = true;
      from_cache_ = false;
    } else if (end.error) {
      must_list = listing || failures % kMostWatchFailures == 0;
    }
    if (end.error) Fail(*end.error, failures);
    if (!Pause(failures, end.retry_after)) return;
  }
}

std::string KubeApiClient::Path() const {
  return "/api/v1/pods?fieldSelector=" + InQuery("spec.nodeName=" + options_.node_name);
}

KubeApiClient::End KubeApiClient::EndOf(const HttpResponse& response, std::string_view what) const {
  if (response.status == kGoneStatus) return {.gone = true};
  return {.error = ErrorOf(response, fmt::format("{}: {}", options_.endpoint.url, what)),
          .retry_after = response.retry_after};
}

KubeApiClient::End KubeApiClient::ListPods() {
  Pods pods;
  std::string version;
  std::string next;
  for (size_t pages = 0; pages == 0 || !next.empty(); ++pages) {
    if (pages == kMostPages) return {.error = Complaint("the list of pods has no end")};
    std::string path = Path() + fmt::format("&limit={}", options_.page);
    if (!next.empty()) {
      path += "&continue=" + InQuery(next);
    } else if (from_cache_) {
      path += "&resourceVersion=0";
    }
    Result<HttpResponse> response = http_.Get(path, {.timeout = std::chrono::seconds(30)});
    if (!response) return {.error = std::move(response).error()};
    if (response->status != HttpResponse::kOk) {
      return EndOf(*response, "listing pods (needs 'list' and 'watch' on pods)");
    }
    Result<PodListPage> page = ReadPodList(response->body);
    if (!page) return {.error = std::move(page).error().With(options_.endpoint.url)};
    for (ContainerMetadata& container : page->containers) {
      pods[container.pod->uid].push_back(std::move(container));
    }
    if (pods.size() > options_.most_pods) return {.error = TooMany()};
    version = std::move(page->resource_version);
    next = std::move(page->next_page);
  }
  version_ = std::move(version);
  from_cache_ = true;
  const absl::MutexLock lock(&mutex_);
  pods_ = std::move(pods);
  listed_ = true;
  error_.reset();
  Changed();
  return {};
}

bool KubeApiClient::TakeEvent(std::string_view line, End& end, bool& progress) {
  Result<PodEvent> event = ReadPodEvent(line);
  if (!event) {
    end.error = std::move(event).error();
    return false;
  }
  if (event->kind == PodEvent::Kind::kGone) {
    end.gone = true;
    return false;
  }
  if (event->kind == PodEvent::Kind::kFailed) {
    end.error = Complaint(event->message);
    return false;
  }
  progress = true;
  Recover();
  if (!event->resource_version.empty()) version_ = std::move(event->resource_version);
  if (event->kind == PodEvent::Kind::kBookmark || event->pod_uid.empty()) return true;
  const absl::MutexLock lock(&mutex_);
  if (event->kind == PodEvent::Kind::kDeleted) {
    pods_.erase(event->pod_uid);
    return true;
  }
  if (pods_.size() >= options_.most_pods && !pods_.contains(event->pod_uid)) {
    end.error = TooMany();
    return false;
  }
  pods_[event->pod_uid] = std::move(event->containers);
  Changed();
  return true;
}

KubeApiClient::End KubeApiClient::Watch(bool& progress) {
  std::uniform_int_distribution<int64_t> spread(options_.watch.count(), 2 * options_.watch.count());
  const std::chrono::seconds length(spread(random_));
  const std::string path =
      Path() + fmt::format("&watch=1&resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds={}",
                           InQuery(version_), length.count());
  End end;
  std::string rest;
  const auto take = [&](std::string_view piece) {
    while (!piece.empty()) {
      const size_t stop = piece.find('\n');
      rest.append(piece.substr(0, stop));
      if (rest.size() > kLongestEvent) {
        end.error = Complaint("an event is too long");
        return false;
      }
      if (stop == std::string_view::npos) return true;
      piece.remove_prefix(stop + 1);
      if (!rest.empty() && !TakeEvent(rest, end, progress)) return false;
      rest.clear();
    }
    return true;
  };
  Result<HttpResponse> response =
      http_.Get(path, {.timeout = length + std::chrono::seconds(30), .idle = options_.idle}, take);
  if (!response) return {.error = std::move(response).error()};
  if (response->status != HttpResponse::kOk) return EndOf(*response, "watching pods");
  return end;
}

}  // namespace pyrometer
