// SPDX-License-Identifier: Apache-2.0
#include "metadata/cri_client.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "proto/cri.grpc.pb.h"

namespace pyrometer {
namespace {

namespace cri = ::runtime::v1;

constexpr size_t kLongestText = 2048;
constexpr size_t kLongestMessage = 300;

// Labels that the kubelet puts on every container.
constexpr const char* kPodName = "io.kubernetes.pod.name";
constexpr const char* kPodNamespace = "io.kubernetes.pod.namespace";
constexpr const char* kPodUid = "io.kubernetes.pod.uid";

// We connect ourselves, because the library's words for why it cannot are no errno.
Result<UniqueFd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(ErrorCode::kInvalid, "{}: is too long for a socket's path", path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return fd;
  }
  const int error = errno;
  if (error == EACCES) {
    return Fail(ErrorCode::kPermission,
                "{}: permission denied; run the agent as root, or with a group that may write to "
                "this socket",
                path);
  }
  return SystemError(error, path);
}

Error ErrorOf(const grpc::Status& status, const std::string& socket, std::string_view call) {
  const std::string words = Printable(status.error_message(), kLongestMessage);
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return Fail(ErrorCode::kUnsupported,
                  "{}: what listens there does not speak CRI v1 (enable containerd's plugin cri; "
                  "containerd before 1.6 does not have it): {}",
                  socket, words);
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Fail(ErrorCode::kExhausted, "{}: {}: {}", socket, call, words);
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Fail(ErrorCode::kPermission, "{}: {}: {}", socket, call, words);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Fail(ErrorCode::kIo, "{}: {}: no answer in time", socket, call);
    default:
      return Fail(ErrorCode::kIo, "{}: {}: {}", socket, call, words);
  }
}

template <typename Map>
std::map<std::string, std::string> TextsOf(const Map& map) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : map) {
    if (key.size() <= kLongestText && value.size() <= kLongestText) texts.emplace(key, value);
  }
  return texts;
}

std::shared_ptr<const PodMetadata> PodOf(const cri::PodSandbox& sandbox) {
  return std::make_shared<const PodMetadata>(
      PodMetadata{.name = sandbox.metadata().name(),
                  .name_space = sandbox.metadata().namespace_(),
                  .uid = sandbox.metadata().uid(),
                  .labels = TextsOf(sandbox.labels()),
                  .annotations = TextsOf(sandbox.annotations())});
}

std::string ValueOf(const cri::Container& container, const char* label) {
  const auto at = container.labels().find(label);
  return at == container.labels().end() ? "" : at->second;
}

// Of one whose sandbox was removed between the two calls.
std::shared_ptr<const PodMetadata> PodOf(const cri::Container& container) {
  return std::make_shared<const PodMetadata>(PodMetadata{
      .name = ValueOf(container, kPodName),
      .name_space = ValueOf(container, kPodNamespace),
      .uid = ValueOf(container, kPodUid),
  });
}

std::vector<ContainerMetadata> Join(const cri::ListContainersResponse& containers,
                                    const cri::ListPodSandboxResponse& sandboxes) {
  std::vector<ContainerMetadata> all;
  absl::flat_hash_map<std::string, std::shared_ptr<const PodMetadata>> pods;
  for (const cri::PodSandbox& sandbox : sandboxes.items()) {
    const auto& pod = pods[sandbox.id()] = PodOf(sandbox);
    all.push_back({.id = sandbox.id(), .pod = pod});
  }
  for (const cri::Container& container : containers.containers()) {
    const auto known = pods.find(container.pod_sandbox_id());
    all.push_back({.id = container.id(),
                   .name = container.metadata().name(),
                   .image = container.image().image(),
                   .attempt = container.metadata().attempt(),
                   .pod = known != pods.end() ? known->second : PodOf(container)});
  }
  return all;
}

}  // namespace

struct CriClient::State {
  State(Options o, const Clock& c) : options(std::move(o)), clock(c) {}

  // `what` is said in errors.
  template <typename Response, typename Method>
  Result<Response> Call(const std::string& socket, std::string_view what, MonotonicTime deadline,
                        const Method& method) {
    grpc::ClientContext context;
    // As a span, which the library counts from now by a clock of its own.
    context.set_deadline(gpr_time_from_nanos(Between(clock.Now(), deadline).count(), GPR_TIMESPAN));
    {
      const std::lock_guard lock(mutex);
      if (cancelled) return Fail(ErrorCode::kIo, "{}: shutting down", socket);
      current = &context;
    }
    Response response;
    const grpc::Status status = method(&context, &response);
    const std::lock_guard lock(mutex);
    current = nullptr;
    if (!status.ok()) return ErrorOf(status, socket, what);
    return response;
  }

  Result<std::vector<ContainerMetadata>> ListAt(const std::string& socket);

  const Options options;
  const Clock& clock;
  std::mutex listing;  // held by the one List() that is under way
  std::mutex mutex;    // of all below
  grpc::ClientContext* current = nullptr;
  bool cancelled = false;
};

Result<std::vector<ContainerMetadata>> CriClient::State::ListAt(const std::string& socket) {
  ASSIGN_OR_RETURN(UniqueFd fd, Connect(socket));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.longest_answer));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // The library owns the socket from here on. The name is what it sends as :authority.
  const auto stub = cri::RuntimeService::NewStub(
      grpc::CreateCustomInsecureChannelFromFd("localhost", fd.Release(), arguments));
  const MonotonicTime deadline = After(clock.Now(), options.timeout);
  // In this order: a container's sandbox was there before it.
  ASSIGN_OR_RETURN(const auto containers,
                   (Call<cri::ListContainersResponse>(
                       socket, "listing containers", deadline, [&](auto* context, auto* response) {
                         return stub->ListContainers(context, cri::ListContainersRequest(),
                                                     response);
                       })));
  ASSIGN_OR_RETURN(const auto sandboxes,
                   (Call<cri::ListPodSandboxResponse>(
                       socket, "listing pods", deadline, [&](auto* context, auto* response) {
                         return stub->ListPodSandbox(context, cri::ListPodSandboxRequest(),
                                                     response);
                       })));
  return Join(containers, sandboxes);
}

CriClient::CriClient(Options options, const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), clock)) {}
CriClient::~CriClient() = default;

// What is said of several sockets is the most telling: anything before that there is none.
Result<std::vector<ContainerMetadata>> CriClient::List() {
  const std::lock_guard lock(state_->listing);
  std::optional<Error> error;
  for (const std::string& socket : state_->options.sockets) {
    Result<std::vector<ContainerMetadata>> list = state_->ListAt(socket);
    if (list) return list;
    const bool tells_more = list.error().code() != ErrorCode::kNotFound;
    if (!error || (tells_more && error->code() == ErrorCode::kNotFound)) {
      error = std::move(list).error();
    }
  }
  if (state_->options.sockets.size() > 1 && error->code() == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "no container runtime listens at any of {}",
                fmt::join(state_->options.sockets, ", "));
  }
  return *std::move(error);
}

void CriClient::Cancel() {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled = true;
  if (state_->current != nullptr) state_->current->TryCancel();
}

std::vector<std::string> KnownCriSockets() {
  return {"/run/containerd/containerd.sock",
          "/run/k3s/containerd/containerd.sock",
          "/run/crio/crio.sock",
          "/run/cri-dockerd.sock",
          "/var/snap/microk8s/common/run/containerd.sock",
          "/run/k0s/containerd.sock"};
}

}  // namespace pyrometer
