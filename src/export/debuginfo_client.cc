// SPDX-License-Identifier: Apache-2.0
// The protocol: github.com/parca-dev/parca, proto/parca/debuginfo/v1alpha1.
#include "export/debuginfo_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "export/answer_limits.h"
#include "proto/parca_debuginfo.pb.h"

namespace pyrometer {
namespace {

namespace debuginfo = parca::debuginfo::v1alpha1;

// As others' chunks, so that none is too large for the server.
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

std::string MethodOf(const char* name) {
  return std::string("/parca.debuginfo.v1alpha1.DebuginfoService/") + name;
}

debuginfo::BuildIDType TypeOf(const DebuginfoId& id) {
  return id.is_hash ? debuginfo::BUILD_ID_TYPE_HASH : debuginfo::BUILD_ID_TYPE_GNU;
}

Receipt BadAnswer(std::string message) {
  return {.outcome = Outcome::kRejected, .reason = "bad_answer", .message = std::move(message)};
}

// Calls `method` and reads its answer.
template <typename Answer, typename Request>
tl::expected<Answer, Receipt> Ask(GrpcClient& grpc, const char* method, const Request& request) {
  const tl::expected<std::string, Receipt> bytes =
      grpc.Call(MethodOf(method), request.SerializeAsString());
  if (!bytes) return tl::unexpected(bytes.error());
  Answer answer;
  if (!answer.ParseFromString(*bytes)) {
    return tl::unexpected(BadAnswer(std::string(method) + ": the answer cannot be read"));
  }
  return answer;
}

// The messages of one upload.
class Chunks {
 public:
  Chunks(const DebuginfoId& id, const std::string& upload_id, const DebuginfoFile& file)
      : file_(file) {
    debuginfo::UploadRequest first;
    first.mutable_info()->set_build_id(id.text);
    first.mutable_info()->set_upload_id(upload_id);
    message_ = first.SerializeAsString();
  }

  Result<std::string_view> Next() {
    if (!has_begun_) {
      has_begun_ = true;
      return std::string_view(message_);
    }
    if (sent_ == file_.size) return std::string_view();
    debuginfo::UploadRequest chunk;
    std::string& bytes = *chunk.mutable_chunk_data();
    bytes.resize(std::min(kChunkBytes, file_.size - sent_));
    RETURN_IF_ERROR(file_.read(sent_, std::as_writable_bytes(std::span(bytes))));
    sent_ += bytes.size();
    message_ = chunk.SerializeAsString();
    return std::string_view(message_);
  }

 private:
  const DebuginfoFile& file_;
  std::string message_;
  bool has_begun_ = false;
  uint64_t sent_ = 0;
};

// "https://host:443" and "/path?query"
std::pair<std::string, std::string> SplitUrl(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t path = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  if (path == std::string::npos) return {url, ""};
  return {url.substr(0, path), url.substr(path)};
}

}  // namespace

Result<std::unique_ptr<DebuginfoClient>> DebuginfoClient::Make(Options options) {
  ASSIGN_OR_RETURN(std::unique_ptr<GrpcClient> grpc, GrpcClient::Make({.address = options.address,
                                                                       .insecure = options.insecure,
                                                                       .gzip = false,
                                                                       .client = options.client}));
  return std::unique_ptr<DebuginfoClient>(new DebuginfoClient(std::move(options), std::move(grpc)));
}

tl::expected<DebuginfoClient::Wish, Receipt> DebuginfoClient::Ask(const DebuginfoId& id) {
  debuginfo::ShouldInitiateUploadRequest request;
  request.set_build_id(id.text);
  request.set_build_id_type(TypeOf(id));
  const auto answer = pyrometer::Ask<debuginfo::ShouldInitiateUploadResponse>(
      *grpc_, "ShouldInitiateUpload", request);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->should_initiate_upload()) return Wish::kWanted;
  // Nothing else in the answer tells the two apart.
  return answer->reason().find("in-progress") != std::string::npos ? Wish::kAtWork : Wish::kHasIt;
}

Receipt DebuginfoClient::Upload(const DebuginfoId& id, const DebuginfoFile& file) {
  debuginfo::InitiateUploadRequest request;
  request.set_build_id(id.text);
  request.set_build_id_type(TypeOf(id));
  request.set_size(static_cast<int64_t>(file.size));
  request.set_hash(file.hash);
  const auto answer =
      pyrometer::Ask<debuginfo::InitiateUploadResponse>(*grpc_, "InitiateUpload", request);
  if (!answer) return answer.error();
  const debuginfo::UploadInstructions& wanted = answer->upload_instructions();
  Receipt sent;
  switch (wanted.upload_strategy()) {
    case debuginfo::UploadInstructions::UPLOAD_STRATEGY_GRPC:
      sent = SendByGrpc(id, wanted.upload_id(), file);
      break;
    case debuginfo::UploadInstructions::UPLOAD_STRATEGY_SIGNED_URL:
      sent = SendByHttp(wanted.signed_url(), file);
      break;
    default:
      sent = BadAnswer("the server wants it sent in a way that is unknown here");
  }
  if (sent.outcome != Outcome::kDelivered) return sent;
  debuginfo::MarkUploadFinishedRequest finished;
  finished.set_build_id(id.text);
  finished.set_upload_id(wanted.upload_id());
  const auto marked =
      pyrometer::Ask<debuginfo::MarkUploadFinishedResponse>(*grpc_, "MarkUploadFinished", finished);
  return marked ? Receipt{} : marked.error();
}

Receipt DebuginfoClient::SendByGrpc(const DebuginfoId& id, const std::string& upload_id,
                                    const DebuginfoFile& file) {
  Chunks chunks(id, upload_id, file);
  const auto bytes = grpc_->Stream(
      MethodOf("Upload"), [&chunks] { return chunks.Next(); }, options_.upload_timeout);
  if (!bytes) return bytes.error();
  debuginfo::UploadResponse answer;
  if (!answer.ParseFromString(*bytes)) return BadAnswer("Upload: the answer cannot be read");
  if (answer.size() != file.size) return BadAnswer("Upload: the server got another size");
  return {};
}

// Whoever has the URL may send; so nothing else says who we are, and the place need not be the
// server's.
Receipt DebuginfoClient::SendByHttp(const std::string& url, const DebuginfoFile& file) {
  const auto [server, path] = SplitUrl(url);
  if (!options_.insecure && !server.starts_with("https://")) {
    return BadAnswer("the server wants it sent without TLS");
  }
  const Result<std::unique_ptr<HttpClient>> http =
      HttpClient::Make(server, {.timeout = options_.upload_timeout});
  if (!http) return BadAnswer(Printable(http.error().message(), kServerWordsBytes));
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return {.outcome = Outcome::kNotArrived, .reason = "cancelled", .message = {}};
    http_ = http->get();
  }
  uint64_t offset = 0;
  const auto answer = (*http)->Put(path, file.size, [&](std::span<std::byte> bytes) {
    Result<void> read = file.read(offset, bytes);
    offset += bytes.size();
    return read;
  });
  const std::lock_guard lock(mutex_);
  http_ = nullptr;
  return answer ? ReceiptOf(*answer) : answer.error();
}

void DebuginfoClient::Cancel() {
  grpc_->Cancel();
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (http_ != nullptr) http_->Cancel();
}

}  // namespace pyrometer
