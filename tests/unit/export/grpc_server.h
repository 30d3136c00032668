// SPDX-License-Identifier: Apache-2.0
// An in-process gRPC server with one service.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "export/grpc_client.h"
#include "tests/shared/eventually.h"

namespace pyrometer {

// Before any server starts gRPC's library, as in the program.
inline const bool kLibraryIsConfigured = [] {
  GrpcClient::ConfigureLibrary();
  return true;
}();

class GrpcServer {
 public:
  explicit GrpcServer(grpc::Service& service,
                      const std::shared_ptr<grpc::ServerCredentials>& credentials =
                          grpc::InsecureServerCredentials(),
                      int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), credentials, &port_);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~GrpcServer() { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  std::string Address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Keeps the requests of a unary method and answers each as it is told.
template <typename Request>
class Recorder {
 public:
  grpc::Status Take(grpc::ServerContext& context, const Request& request) {
    std::unique_lock lock(mutex_);
    requests_.push_back(request);
    peer_ = context.peer();
    metadata_.clear();
    for (const auto& [key, value] : context.client_metadata()) {
      metadata_.emplace(std::string(key.data(), key.size()),
                        std::string(value.data(), value.size()));
    }
    changed_.notify_all();
    if (hangs_) {
      while (!context.IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return answer_;
  }

  void Answer(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(status);
  }
  void Hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  // Fails the test if `count` requests do not come.
  void WaitForRequests(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kTestPatience, [&] { return requests_.size() >= count; }));
  }
  std::vector<Request> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Whom the last request came from: the client's end of the connection.
  std::string Peer() const {
    const std::lock_guard lock(mutex_);
    return peer_;
  }
  // Of the last request.
  std::string Metadata(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = metadata_.find(key);
    return at == metadata_.end() ? "" : at->second;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> requests_;
  std::string peer_;
  std::multimap<std::string, std::string> metadata_;
  grpc::Status answer_;
  bool hangs_ = false;
};

}  // namespace pyrometer
