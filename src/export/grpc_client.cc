// SPDX-License-Identifier: Apache-2.0
#include "export/grpc_client.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "export/grpc_receipt.h"
#include "export/not_arrived.h"

namespace pyrometer {
namespace {

constexpr size_t kPemBytes = 4 << 20;
constexpr int kMessageBytes = 1 << 20;
constexpr int kFirstReconnectMs = 500;
constexpr int kLongestReconnectMs = 10'000;

// What tells that a file was replaced or rewritten.
using FileStamp = std::tuple<dev_t, ino_t, off_t, time_t, long>;
using TlsStamp = std::array<FileStamp, 3>;

FileStamp StampOf(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

TlsStamp StampOf(const ClientTls& tls) {
  return {StampOf(tls.ca_file), StampOf(tls.cert_file), StampOf(tls.key_file)};
}

// An empty file is an error: to the library, no authorities mean those of the system.
Result<std::string> ReadPem(const std::string& path) {
  ASSIGN_OR_RETURN(std::string pem, ReadFile(path, kPemBytes));
  if (pem.empty()) return Fail(ErrorCode::kInvalid, "{}: is empty", path);
  return pem;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const GrpcClient::Options& options) {
  if (options.insecure) return grpc::InsecureChannelCredentials();
  const ClientTls& tls = options.client.tls;
  grpc::SslCredentialsOptions pem;
  if (!tls.ca_file.empty()) {
    ASSIGN_OR_RETURN(pem.pem_root_certs, ReadPem(tls.ca_file));
  }
  if (!tls.cert_file.empty()) {
    ASSIGN_OR_RETURN(pem.pem_cert_chain, ReadPem(tls.cert_file));
    ASSIGN_OR_RETURN(pem.pem_private_key, ReadPem(tls.key_file));
  }
  return grpc::SslCredentials(pem);
}

grpc::ChannelArguments ArgumentsOf(const GrpcClient::Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix("pyrometer/" PYROMETER_VERSION);
  arguments.SetMaxReceiveMessageSize(kMessageBytes);
  // A service config from DNS could ask for retries.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  const auto connect = std::chrono::ceil<std::chrono::milliseconds>(
      std::min(options.client.connect_timeout, options.client.timeout));
  // In spite of its name the least time that an attempt to connect gets.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect.count()));
  if (!options.client.tls.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.client.tls.server_name);
  }
  return arguments;
}

std::string LowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Result<void> CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  constexpr size_t kPortDigits = 5;
  if (colon == std::string::npos || colon == 0 || port.empty() || port.size() > kPortDigits ||
      port.find_first_not_of("0123456789") != std::string::npos ||
      address.find_first_of("/ \t\r\n@?#%") != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "address \"{}\": expected host:port", WithoutUser(address));
  }
  return {};
}

// gRPC's library ends the program over a header that only it may set.
Result<void> CheckMetadata(const ClientOptions& options) {
  for (const auto& [name, value] : options.headers) {
    const std::string key = LowerCase(name);
    if (key.starts_with("grpc-") || key == "te" || key == "content-type" || key == "user-agent" ||
        key == "host") {
      return Fail(ErrorCode::kInvalid, "header {}: gRPC sets it itself", name);
    }
  }
  return {};
}

// A deadline so long from now, which the library counts by a clock of its own.
gpr_timespec In(std::chrono::nanoseconds time) {
  return gpr_time_from_nanos(time.count(), GPR_TIMESPAN);
}

// What was said in one call.
struct Conversation {
  bool started = false;  // the request, or its head, was handed to a connection
  grpc::Status status;
  std::string answer;
};

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Step by step rather than by one unary call, because only the steps tell whether the request ever
// got a connection. Ends at the context's deadline, or when it is cancelled.
Conversation Converse(grpc::Channel& channel, const std::string& method, std::string_view request,
                      grpc::ClientContext& context) {
  grpc::CompletionQueue queue;
  // True if the step that was begun last went well.
  const auto finish_step = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  Conversation conversation;
  const std::shared_ptr<grpc::Channel> borrowed(&channel, [](grpc::Channel*) {});
  grpc::GenericStub stub(borrowed);
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  conversation.started = finish_step();
  if (conversation.started) {
    const grpc::Slice slice(request.data(), request.size());
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    finish_step();
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    if (finish_step()) conversation.answer = BytesOf(answer);
  }
  call->Finish(&conversation.status, nullptr);
  finish_step();
  queue.Shutdown();
  while (finish_step()) {
  }
  return conversation;
}

// True if the channel's connection broke about now. A status that the library makes up for a lost
// connection looks like one of the server (1.51 says "received from peer" of both), but only the
// latter leaves the connection standing.
bool LostConnection(grpc::Channel& channel) {
  constexpr std::chrono::milliseconds kNoticed{50};
  return channel.GetState(false) != GRPC_CHANNEL_READY ||
         channel.WaitForStateChange(GRPC_CHANNEL_READY, In(kNoticed));
}

CallEnd CallEndOf(const Conversation& conversation, grpc::Channel& channel,
                  const grpc::ClientContext& context) {
  if (!conversation.started) return CallEnd::kNeverSent;
  if (context.debug_error_string().find("received from peer") == std::string::npos) {
    return CallEnd::kAlone;
  }
  const bool made_up = SpeaksOfConnection(conversation.status) ||
                       (IsOfTrouble(conversation.status) && LostConnection(channel));
  return made_up ? CallEnd::kAlone : CallEnd::kServer;
}

}  // namespace

struct GrpcClient::State {
  State(Options o, const Clock& c)
      : options(std::move(o)), clock(c), arguments(ArgumentsOf(options)) {}

  // A channel that is young and fits the certificate files as they are now; null once cancelled.
  // Calls under way keep the one that they have.
  Result<std::shared_ptr<grpc::Channel>> Channel() {
    const TlsStamp now = options.insecure ? TlsStamp{} : StampOf(options.client.tls);
    const std::lock_guard lock(mutex);
    if (cancelled) return nullptr;
    const MonotonicTime time = clock.Now();
    const bool is_young = Between(made, time) < options.longest_use;
    if (channel != nullptr && stamp == now && is_young) return channel;
    ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(options));
    // The scheme keeps the target apart from a peer's address, see CallEndOf.
    channel = grpc::CreateCustomChannel("dns:///" + options.address, credentials, arguments);
    stamp = now;
    made = time;
    return channel;
  }

  void Forget(const std::shared_ptr<grpc::Channel>& dead) {
    const std::lock_guard lock(mutex);
    if (channel == dead) channel = nullptr;
  }

  // False if nothing may begin any more.
  bool Begin(grpc::ClientContext& call) {
    const std::lock_guard lock(mutex);
    if (cancelled) return false;
    calls.insert(&call);
    return true;
  }

  void End(grpc::ClientContext& call) {
    const std::lock_guard lock(mutex);
    calls.erase(&call);
  }

  const Options options;
  const Clock& clock;
  const grpc::ChannelArguments arguments;
  std::mutex mutex;  // of all below
  std::shared_ptr<grpc::Channel> channel;
  TlsStamp stamp{};
  MonotonicTime made;
  std::set<grpc::ClientContext*> calls;
  bool cancelled = false;
};

GrpcClient::GrpcClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrpcClient::~GrpcClient() = default;

// By the environment, where a user may decide otherwise, because the library's functions for this
// come and go with its versions.
void GrpcClient::ConfigureLibrary() {
  static const bool configured = [] {
    // It would write failed handshakes to standard error, which are in our receipts.
    ::setenv("GRPC_VERBOSITY", "NONE", 0);
    // Names as the rest of the machine resolves them; and c-ares 1.18 leaks some of those that are
    // in /etc/hosts.
    ::setenv("GRPC_DNS_RESOLVER", "native", 0);
    return true;
  }();
  std::ignore = configured;
}

Result<std::unique_ptr<GrpcClient>> GrpcClient::Make(Options options, const Clock& clock) {
  ConfigureLibrary();
  RETURN_IF_ERROR(CheckAddress(options.address));
  RETURN_IF_ERROR(CheckClientOptions(options.client));
  RETURN_IF_ERROR(CheckMetadata(options.client));
  return std::unique_ptr<GrpcClient>(
      new GrpcClient(std::make_unique<State>(std::move(options), clock)));
}

tl::expected<std::string, Receipt> GrpcClient::Call(const std::string& method,
                                                    std::string_view request) {
  const ClientOptions& options = state_->options.client;
  const Result<std::string> authorization = AuthorizationOf(options);
  if (!authorization) {
    return tl::unexpected(NotArrived("credentials", authorization.error().message()));
  }
  const Result<std::shared_ptr<grpc::Channel>> channel = state_->Channel();
  if (!channel) return tl::unexpected(NotArrived("tls", channel.error().message()));
  if (*channel == nullptr) return tl::unexpected(NotArrived("cancelled", "shutting down"));

  grpc::ClientContext context;
  context.set_deadline(In(options.timeout));
  if (state_->options.gzip) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  if (!authorization->empty()) context.AddMetadata("authorization", *authorization);
  for (const auto& [name, value] : options.headers) context.AddMetadata(LowerCase(name), value);

  if (!state_->Begin(context)) return tl::unexpected(NotArrived("cancelled", "shutting down"));
  const Conversation conversation = Converse(**channel, method, request, context);
  state_->End(context);
  if (conversation.status.ok()) return conversation.answer;
  if (conversation.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    state_->Forget(*channel);
  }
  return tl::unexpected(
      ReceiptOf(conversation.status, CallEndOf(conversation, **channel, context)));
}

void GrpcClient::Cancel() {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled = true;
  for (grpc::ClientContext* call : state_->calls) call->TryCancel();
  state_->channel = nullptr;
}

}  // namespace pyrometer
