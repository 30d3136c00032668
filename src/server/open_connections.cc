// SPDX-License-Identifier: Apache-2.0
#include "server/open_connections.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

namespace pyrometer {

OpenConnections::OpenConnections(std::function<bool()> crowded)
    : crowded_(std::move(crowded)), changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

OpenConnections::Entry::Entry(OpenConnections& all, int socket) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  id_ = ++all_.last_id_;
  all_.connections_[id_].socket = socket;
  if (all_.ended_) shutdown(socket, SHUT_RDWR);
}

OpenConnections::Entry::~Entry() {
  const std::lock_guard lock(all_.mutex_);
  all_.connections_.erase(id_);
}

void OpenConnections::Entry::SetIdle(bool idle) {
  const std::lock_guard lock(all_.mutex_);
  Connection& connection = all_.connections_[id_];
  connection.idle = idle;
  if (idle && all_.crowded_()) shutdown(connection.socket, SHUT_RD);
}

std::stop_token OpenConnections::Entry::Watch() {
  std::stop_source gone;
  {
    const std::lock_guard lock(all_.mutex_);
    Connection& connection = all_.connections_[id_];
    connection.watched = true;
    connection.gone = gone;
    if (all_.ended_) gone.request_stop();
  }
  all_.Wake();
  return gone.get_token();
}

void OpenConnections::Entry::Unwatch() {
  {
    const std::lock_guard lock(all_.mutex_);
    Connection& connection = all_.connections_[id_];
    connection.watched = false;
    connection.gone = std::stop_source(std::nostopstate);
  }
  all_.Wake();
}

void OpenConnections::EndIdle() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, connection] : connections_) {
    if (connection.idle) shutdown(connection.socket, SHUT_RD);
  }
}

void OpenConnections::EndAll() {
  std::vector<std::stop_source> gone;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (auto& [id, connection] : connections_) {
      shutdown(connection.socket, SHUT_RDWR);
      gone.push_back(connection.gone);
    }
  }
  // Outside of the lock: what a stop calls may want it.
  for (std::stop_source& source : gone) source.request_stop();
}

void OpenConnections::TakeChange() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(changed_.get(), &count, sizeof(count));
}

std::vector<OpenConnections::Watched> OpenConnections::ToWatch() const {
  const std::lock_guard lock(mutex_);
  std::vector<Watched> watched;
  for (const auto& [id, connection] : connections_) {
    if (connection.watched && !connection.gone.stop_requested()) {
      watched.push_back({.id = id, .socket = connection.socket});
    }
  }
  return watched;
}

void OpenConnections::LookAfter(uint64_t id) {
  std::optional<std::stop_source> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    // Asked again: the number may be another socket's since the poll that reported it.
    pollfd state{.fd = found->second.socket, .events = POLLRDHUP, .revents = 0};
    if (poll(&state, 1, 0) <= 0) return;
    gone.emplace(found->second.gone);
  }
  gone->request_stop();
}

void OpenConnections::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(changed_.get(), &one, sizeof(one));
}

}  // namespace pyrometer
