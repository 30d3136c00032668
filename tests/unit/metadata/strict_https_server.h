// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace pyrometer {

// The API server and the kubelet of node n1, over TLS. What a client may ask, and how, is checked
// as they do; what is wrong about a request is noted. Without the token of now the answer is 401.
// Otherwise each request gets the next of `steps`, and later ones wait for ever.
class StrictHttpsServer {
 public:
  struct Step {
    int status = 200;
    std::string body{};
    std::chrono::milliseconds pause{};  // between pieces
    size_t piece = 0;                   // bytes; 0: all
    bool cut = false;                   // the connection ends before the body does
    std::string retry_after{};
    bool held = false;  // after the first piece, until Release()
  };
  struct Asked {
    std::string what;  // "list 0", "list continue 2", "watch 7", "pods", "401"
    MonotonicTime when;
  };

  // `clock` outlives it.
  StrictHttpsServer(const std::string& cert, const std::string& key, std::vector<Step> steps,
                    const Clock& clock)
      : steps_(std::move(steps)), clock_(clock), server_(cert.c_str(), key.c_str()) {
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
    };
    server_.Get("/api/v1/pods", answer);
    server_.Get("/pods", answer);
    server_.Get("/api/v1/nodes/n1", answer);
    server_.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (response.status == 404) Note("no such path: " + request.path);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~StrictHttpsServer() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      released_.notify_all();
    }
    server_.stop();
  }
  StrictHttpsServer(const StrictHttpsServer&) = delete;
  StrictHttpsServer& operator=(const StrictHttpsServer&) = delete;

  std::string url() const { return fmt::format("https://127.0.0.1:{}", port_); }
  void SetToken(std::string token) {
    const std::lock_guard lock(mutex_);
    token_ = std::move(token);
  }
  std::vector<std::string> mistakes() const {
    const std::lock_guard lock(mutex_);
    return mistakes_;
  }
  std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // Whether it has sent a first piece and waits for Release().
  bool IsHolding() const {
    const std::lock_guard lock(mutex_);
    return is_holding_;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    released_.notify_all();
  }
  // What was asked, in one line.
  std::string Text() const {
    std::string text;
    for (const Asked& one : asked()) text += (text.empty() ? "" : ", ") + one.what;
    return text;
  }

 private:
  void Note(std::string mistake) {
    const std::lock_guard lock(mutex_);
    mistakes_.push_back(std::move(mistake));
  }

  // Of each parameter that may be there, or has to be.
  void Check(const httplib::Request& request, const std::set<std::string>& allowed) {
    for (const auto& [name, value] : request.params) {
      if (!allowed.contains(name)) Note("parameter " + name);
      if (request.params.count(name) != 1) Note("twice: " + name);
    }
    if (request.get_header_value("Accept") != "application/json") Note("Accept");
  }

  std::string CheckList(const httplib::Request& request) {
    Check(request, {"fieldSelector", "limit", "continue", "resourceVersion"});
    if (request.get_param_value("limit") != "500") Note("limit");
    if (!request.has_param("continue")) return "list " + request.get_param_value("resourceVersion");
    // The server refuses a list that goes on from a place and names a version.
    if (request.has_param("resourceVersion")) Note("continue with resourceVersion");
    return "list continue " + request.get_param_value("continue");
  }

  std::string CheckWatch(const httplib::Request& request) {
    Check(request,
          {"fieldSelector", "watch", "resourceVersion", "allowWatchBookmarks", "timeoutSeconds"});
    if (request.get_param_value("allowWatchBookmarks") != "true") Note("no bookmarks");
    if (request.get_param_value("timeoutSeconds").empty()) Note("a watch without an end");
    if (watches_ > 1) Note("two watches at a time");
    return "watch " + request.get_param_value("resourceVersion");
  }

  std::string CheckRequest(const httplib::Request& request) {
    if (request.path == "/pods" || request.path == "/api/v1/nodes/n1") {
      Check(request, {});
      return request.path == "/pods" ? "pods" : "node";
    }
    if (request.get_param_value("fieldSelector") != "spec.nodeName=n1") Note("another node's pods");
    return request.get_param_value("watch") == "1" ? CheckWatch(request) : CheckList(request);
  }

  void Answer(const httplib::Request& request, httplib::Response& response) {
    const bool is_watch = request.get_param_value("watch") == "1";
    if (is_watch) ++watches_;
    const std::shared_ptr<void> leaves(nullptr, [this, is_watch](void*) {
      if (is_watch) --watches_;
    });
    std::string what = CheckRequest(request);
    const std::optional<Step> step = Next(request, std::move(what));
    if (!step) {
      Send(response, {.body = " ", .pause = std::chrono::hours(1), .piece = 1}, leaves);
      return;
    }
    response.status = step->status;
    if (!step->retry_after.empty()) response.set_header("Retry-After", step->retry_after);
    Send(response, *step, leaves);
  }

  // Notes what was asked. Nothing: there are no more steps.
  std::optional<Step> Next(const httplib::Request& request, std::string what) {
    const std::lock_guard lock(mutex_);
    if (request.get_header_value("Authorization") != "Bearer " + token_) {
      asked_.push_back({"401", clock_.Now()});
      return Step{.status = 401, .body = "Unauthorized"};
    }
    asked_.push_back({std::move(what), clock_.Now()});
    return next_ < steps_.size() ? std::optional(steps_[next_++]) : std::nullopt;
  }

  void Send(httplib::Response& response, const Step& step, std::shared_ptr<void> until_its_end) {
    const size_t piece = step.piece == 0 ? std::max<size_t>(step.body.size(), 1) : step.piece;
    response.set_chunked_content_provider(
        "application/json", [this, step, piece, at = size_t{0}, kept = std::move(until_its_end)](
                                size_t /*offset*/, httplib::DataSink& sink) mutable {
          if (at >= step.body.size()) {
            kept.reset();  // before the client can know of it and come again
            if (step.cut) return false;
            sink.done();
            return true;
          }
          const size_t length = std::min(piece, step.body.size() - at);
          if (!sink.write(step.body.data() + at, length)) return false;
          if (step.held && at == 0) AwaitRelease();
          at += length;
          return Pause(step.pause, sink);
        });
  }

  void AwaitRelease() {
    std::unique_lock lock(mutex_);
    is_holding_ = true;
    released_.wait(lock, [this] { return is_released_ || ended_; });
  }

  // False if it ends before.
  bool Pause(std::chrono::milliseconds pause, const httplib::DataSink& sink) const {
    using std::chrono::steady_clock;
    const auto end = steady_clock::now() + pause;
    while (steady_clock::now() < end) {
      if (ended_ || !sink.is_writable()) return false;
      std::this_thread::sleep_for(std::min(pause, std::chrono::milliseconds(20)));
    }
    return true;
  }

  const std::vector<Step> steps_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool is_released_ = false;
  bool is_holding_ = false;
  std::string token_ = "first";
  std::vector<std::string> mistakes_;
  std::vector<Asked> asked_;
  size_t next_ = 0;
  std::atomic<int> watches_ = 0;
  std::atomic<bool> ended_ = false;
  httplib::SSLServer server_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace pyrometer
