// SPDX-License-Identifier: Apache-2.0
// A server that takes debug information as Parca does, and misbehaves when told to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "proto/parca_debuginfo.grpc.pb.h"

namespace pyrometer {

class DebuginfoServer final : public parca::debuginfo::v1alpha1::DebuginfoService::Service {
 public:
  using Instructions = parca::debuginfo::v1alpha1::UploadInstructions;

  // What to say at each step; OK: what Parca would.
  struct Behaviour {
    grpc::Status question{};
    std::string has_it{};  // the reason; "": it has not
    grpc::Status begin{};
    std::string signed_url{};  // "": by gRPC
    bool hangs = false;        // until the client goes
    grpc::Status upload{};
    uint64_t size_off_by = 0;
    grpc::Status finish{};
    std::function<void()> on_begin = [] {};
  };
  struct Upload {
    std::string bytes;
    size_t chunks = 0;
    bool is_finished = false;
  };

  void Behave(Behaviour behaviour) {
    const std::lock_guard lock(mutex_);
    behaviour_ = std::move(behaviour);
  }

  grpc::Status ShouldInitiateUpload(
      grpc::ServerContext* /*context*/,
      const parca::debuginfo::v1alpha1::ShouldInitiateUploadRequest* request,
      parca::debuginfo::v1alpha1::ShouldInitiateUploadResponse* response) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back(request->build_id());
    types_[request->build_id()] = request->build_id_type();
    if (!behaviour_.question.ok()) return behaviour_.question;
    const auto known = uploads_.find(request->build_id());
    const bool has_it = known != uploads_.end() && known->second.is_finished;
    response->set_should_initiate_upload(!has_it && behaviour_.has_it.empty());
    response->set_reason(behaviour_.has_it);
    return grpc::Status::OK;
  }

  grpc::Status InitiateUpload(
      grpc::ServerContext* /*context*/,
      const parca::debuginfo::v1alpha1::InitiateUploadRequest* request,
      parca::debuginfo::v1alpha1::InitiateUploadResponse* response) override {
    const std::lock_guard lock(mutex_);
    begun_.push_back(*request);
    behaviour_.on_begin();
    if (!behaviour_.begin.ok()) return behaviour_.begin;
    Instructions& instructions = *response->mutable_upload_instructions();
    instructions.set_upload_id("upload-" + request->build_id());
    instructions.set_upload_strategy(behaviour_.signed_url.empty()
                                         ? Instructions::UPLOAD_STRATEGY_GRPC
                                         : Instructions::UPLOAD_STRATEGY_SIGNED_URL);
    instructions.set_signed_url(behaviour_.signed_url);
    return grpc::Status::OK;
  }

  grpc::Status Upload(grpc::ServerContext* context,
                      grpc::ServerReader<parca::debuginfo::v1alpha1::UploadRequest>* reader,
                      parca::debuginfo::v1alpha1::UploadResponse* response) override {
    Behaviour behaviour;
    {
      const std::lock_guard lock(mutex_);
      behaviour = behaviour_;
      ++begun_uploads_;
    }
    while (behaviour.hangs && !context->IsCancelled()) std::this_thread::yield();
    parca::debuginfo::v1alpha1::UploadRequest request;
    if (!reader->Read(&request) || !request.has_info() ||
        request.info().upload_id() != "upload-" + request.info().build_id()) {
      return {grpc::INVALID_ARGUMENT, "no such upload"};
    }
    const std::string id = request.info().build_id();
    struct Upload upload;
    while (reader->Read(&request)) {
      upload.bytes += request.chunk_data();
      ++upload.chunks;
    }
    response->set_size(upload.bytes.size() + behaviour.size_off_by);
    const std::lock_guard lock(mutex_);
    if (behaviour.upload.ok()) uploads_[id] = std::move(upload);
    return behaviour.upload;
  }

  grpc::Status MarkUploadFinished(
      grpc::ServerContext* /*context*/,
      const parca::debuginfo::v1alpha1::MarkUploadFinishedRequest* request,
      parca::debuginfo::v1alpha1::MarkUploadFinishedResponse* /*response*/) override {
    const std::lock_guard lock(mutex_);
    if (!behaviour_.finish.ok()) return behaviour_.finish;
    if (request->upload_id() != "upload-" + request->build_id()) {
      return {grpc::INVALID_ARGUMENT, "upload id mismatch"};
    }
    uploads_[request->build_id()].is_finished = true;
    return grpc::Status::OK;
  }

  std::vector<std::string> asked() const { return Get(asked_); }
  std::vector<parca::debuginfo::v1alpha1::InitiateUploadRequest> begun() const {
    return Get(begun_);
  }
  std::map<std::string, struct Upload> uploads() const { return Get(uploads_); }
  std::map<std::string, int> types() const { return Get(types_); }
  size_t begun_uploads() const { return Get(begun_uploads_); }

 private:
  template <typename Value>
  Value Get(const Value& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  Behaviour behaviour_;
  std::vector<std::string> asked_;
  std::map<std::string, int> types_;  // of build ids, by id
  std::vector<parca::debuginfo::v1alpha1::InitiateUploadRequest> begun_;
  size_t begun_uploads_ = 0;
  std::map<std::string, struct Upload> uploads_;
};

}  // namespace pyrometer
