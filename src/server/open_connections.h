// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <vector>

#include "base/unique_fd.h"

namespace pyrometer {

// The connections that threads serve now: so that a stop, a client that went away, or a lack of
// threads ends what waits on them. Thread-safe.
class OpenConnections {
 public:
  // `crowded`: whether connections wait for a thread; asked from any thread.
  explicit OpenConnections(std::function<bool()> crowded);

  // A place in the list, for as long as it lives; `socket` must live longer.
  class Entry {
   public:
    Entry(OpenConnections& all, int socket);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // An idle connection waits for its client's next request, and ends if threads are wanted.
    void SetIdle(bool idle);
    // Stops when the client goes away, or the server ends. Until Unwatch().
    std::stop_token Watch();
    void Unwatch();

   private:
    OpenConnections& all_;
    uint64_t id_;
  };

  // Ends the idle ones, for others to have their threads.
  void EndIdle();
  // Ends all there are, and those to come.
  void EndAll();

  // For the thread that watches: a descriptor that is readable when the sockets to be watched have
  // changed, and them, with their ids.
  int changed() const { return changed_.get(); }
  void TakeChange() const;
  struct Watched {
    uint64_t id = 0;
    int socket = -1;
  };
  std::vector<Watched> ToWatch() const;
  // To be called when something happened on its socket: stops it if the client is gone.
  void LookAfter(uint64_t id);
  // Makes changed() readable.
  void Wake() const;

 private:
  struct Connection {
    int socket = -1;
    bool idle = false;
    bool watched = false;
    std::stop_source gone{std::nostopstate};
  };

  const std::function<bool()> crowded_;
  const UniqueFd changed_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Connection> connections_;
  uint64_t last_id_ = 0;
  bool ended_ = false;
};

}  // namespace pyrometer
