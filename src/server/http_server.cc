// SPDX-License-Identifier: Apache-2.0
#include "server/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/stoppable_sleep.h"

namespace pyrometer {

Result<std::unique_ptr<HttpServer>> HttpServer::Start(AgentView& agent, HttpServerOptions options) {
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(options.listen));
  if (options.cert_file.empty() != options.key_file.empty()) {
    return Fail(ErrorCode::kInvalid, "the server's TLS needs both a certificate and its key");
  }
  std::unique_ptr<TlsIdentity> tls;
  if (!options.cert_file.empty()) {
    ASSIGN_OR_RETURN(tls, TlsIdentity::Load(options.cert_file, options.key_file));
  }
  const std::string trouble = Access(options.bearer_token_file).Trouble();
  if (!trouble.empty()) return Fail(ErrorCode::kInvalid, "{}", trouble);
  ASSIGN_OR_RETURN(UniqueFd listener, Listen(address));
  return std::unique_ptr<HttpServer>(
      new HttpServer(agent, std::move(options), std::move(listener), std::move(tls)));
}

HttpServer::HttpServer(AgentView& agent, HttpServerOptions options, UniqueFd listener,
                       std::unique_ptr<TlsIdentity> tls)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      address_(LocalAddressOf(listener_.get())),
      tls_(std::move(tls)),
      connections_([this] { return workers_.Crowded(); }),
      endpoints_(agent, {.bearer_token_file = options_.bearer_token_file,
                         .max_profiles = options_.max_profiles,
                         .troubles = [this] { return Troubles(); }}),
      workers_(options_.threads, [this](UniqueFd socket) { Serve(std::move(socket)); }),
      acceptor_([this](const std::stop_token& stop) { Accept(stop); }) {}

HttpServer::~HttpServer() {
  acceptor_.request_stop();
  connections_.Wake();
  acceptor_.join();
  connections_.EndAll();
  workers_.Stop();
}

std::vector<std::string> HttpServer::Troubles() const {
  std::vector<std::string> troubles;
  for (std::string trouble :
       {tls_ ? tls_->Trouble() : std::string(), Access(options_.bearer_token_file).Trouble()}) {
    if (!trouble.empty()) troubles.push_back(std::move(trouble));
  }
  return troubles;
}

void HttpServer::Accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<OpenConnections::Watched> watched = connections_.ToWatch();
    std::vector<pollfd> ready = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = connections_.changed(), .events = POLLIN, .revents = 0}};
    const size_t first_watched = ready.size();
    for (const OpenConnections::Watched& connection : watched) {
      ready.push_back({.fd = connection.socket, .events = POLLRDHUP, .revents = 0});
    }
    if (poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR
    if (ready[1].revents != 0) connections_.TakeChange();
    for (size_t i = 0; i < watched.size(); ++i) {
      if (ready[first_watched + i].revents != 0) connections_.LookAfter(watched[i].id);
    }
    if (ready[0].revents == 0) continue;
    AcceptOne(stop);
  }
}

void HttpServer::AcceptOne(const std::stop_token& stop) {
  UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    // The connection stays in the queue, so poll would report it again at once.
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (full) SleepFor(std::chrono::milliseconds(100), stop);
    return;
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const Workers::Taken taken = workers_.Offer(socket);
  if (taken == Workers::Taken::kAtOnce) return;
  connections_.EndIdle();
  if (taken == Workers::Taken::kWaits || tls_) return;
  constexpr std::string_view kBusy =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 25\r\n"
      "Connection: close\r\n\r\nToo many connections now\n";
  send(socket.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
}

void HttpServer::Serve(UniqueFd socket) {
  UniqueSsl ssl;
  if (tls_) {
    Result<UniqueSsl> accepted = tls_->Accept(socket.get());
    if (!accepted) return;
    ssl = *std::move(accepted);
  }
  Channel channel(std::move(socket), std::move(ssl), options_.clock);
  Converse(channel, endpoints_, connections_, options_.limits);
}

}  // namespace pyrometer
