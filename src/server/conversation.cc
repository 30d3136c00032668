// SPDX-License-Identifier: Apache-2.0
// cpp-httplib parses requests and writes answers. Its own sockets are not used: they do not bound
// the time a request may take to come nor the sum of its headers, and hold a stop up for as long as
// a connection may be idle.
#include "server/conversation.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>

#include "server/listen_address.h"

namespace pyrometer {
namespace {

// Of refusals that no endpoint words: the request did not get that far.
std::string_view Reason(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Internal Server Error";
  }
}

// What cpp-httplib reads from and writes to.
class RequestStream : public httplib::Stream {
 public:
  RequestStream(Channel& channel, const ConversationLimits& limits)
      : channel_(channel), limits_(limits) {}

  // Waits for the first byte of a request.
  bool AwaitRequest(std::chrono::milliseconds at_most) {
    return next_ < end_ || channel_.AwaitInput(channel_.In(at_most));
  }

  void BeginRequest() {
    head_left_ = limits_.head_bytes;
    head_deadline_ = channel_.In(limits_.head);
    answering_ = false;
  }

  // Why the last request was not read to its end: an HTTP status, or 0.
  int refused() const { return refused_; }

  ssize_t read(char* out, size_t size) override {
    if (next_ == end_ && !Fill()) return -1;
    const size_t count = std::min({size, end_ - next_, head_left_});
    if (count == 0) {
      refused_ = 431;
      return -1;
    }
    std::copy_n(buffer_.data() + next_, count, out);
    next_ += count;
    head_left_ -= count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* bytes, size_t size) override {
    // cpp-httplib takes a request that was cut off for a bad one, and would say so.
    if (refused_ != 0) return static_cast<ssize_t>(size);
    if (!std::exchange(answering_, true)) answer_deadline_ = channel_.In(limits_.answer);
    return channel_.Write({bytes, size}, answer_deadline_) ? static_cast<ssize_t>(size) : -1;
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  // cpp-httplib refuses what select(2) cannot take, which nobody calls here.
  socket_t socket() const override { return 0; }

 private:
  bool Fill() {
    const ptrdiff_t got = channel_.Read(buffer_.data(), buffer_.size(), head_deadline_);
    next_ = 0;
    end_ = got > 0 ? static_cast<size_t>(got) : 0;
    if (got < 0 && channel_.IsPast(head_deadline_)) refused_ = 408;
    return got > 0;
  }

  Channel& channel_;
  const ConversationLimits& limits_;
  std::array<char, 4096> buffer_{};
  size_t next_ = 0;  // of the bytes read, the first not taken
  size_t end_ = 0;
  size_t head_left_ = 0;
  MonotonicTime head_deadline_;
  MonotonicTime answer_deadline_;
  bool answering_ = false;
  int refused_ = 0;
};

class Conversation : private httplib::Server {
 public:
  Conversation(Channel& channel, Endpoints& endpoints, OpenConnections::Entry& entry,
               const ConversationLimits& limits)
      : channel_(channel),
        endpoints_(endpoints),
        entry_(entry),
        limits_(limits),
        stream_(channel, limits),
        loopback_(LocalAddressOf(channel.socket()).loopback) {
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
      return HandlerResponse::Handled;
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             const std::exception_ptr&) { response.status = 500; });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      response.set_content(std::string(Reason(response.status)) + "\n", "text/plain");
    });
    set_default_headers({{"X-Content-Type-Options", "nosniff"},
                         {"X-Frame-Options", "SAMEORIGIN"},
                         {"Referrer-Policy", "no-referrer"},
                         {"Cross-Origin-Resource-Policy", "same-origin"},
                         {"Cache-Control", "no-store"}});
    set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits.idle).count());
  }

  void Run() {
    for (uint32_t served = 1; AwaitRequest(served == 1); ++served) {
      stream_.BeginRequest();
      bool client_closes = false;
      const bool last = served == limits_.requests;
      const bool answered = process_request(stream_, last, client_closes,
                                            [this](httplib::Request& request) { Admit(request); });
      // What follows a request that was not understood may be anything.
      closing_ = closing_ || !std::exchange(admitted_, false);
      if (!answered || last || client_closes || closing_) break;
    }
    if (stream_.refused() != 0) Refuse(stream_.refused());
    End();
  }

 private:
  bool AwaitRequest(bool first) {
    if (first) return stream_.AwaitRequest(limits_.head);
    entry_.SetIdle(true);
    const bool came = stream_.AwaitRequest(limits_.idle);
    entry_.SetIdle(false);
    return came;
  }

  // Before anything is answered.
  void Admit(httplib::Request& request) {
    admitted_ = true;
    request.ranges.clear();  // of answers that are made anew for each request
    request.headers.erase("Expect");
    const std::string length = request.get_header_value("Content-Length");
    has_body_ = request.has_header("Transfer-Encoding") || (!length.empty() && length != "0");
    if (!has_body_) return;
    // Its bytes are never read, so they must not be taken for the next request.
    closing_ = true;
    request.headers.erase("Connection");
    request.headers.emplace("Connection", "close");
  }

  void Answer(const httplib::Request& request, httplib::Response& response) {
    const std::string host = request.get_header_value("Host");
    const std::string authorization = request.get_header_value("Authorization");
    Call call{.method = request.method,
              .path = request.path,
              .parameters = ParseQuery(request.target),
              .host = host,
              .authorization = authorization,
              .loopback = loopback_,
              .client_gone = [this] { return entry_.Watch(); }};
    Reply reply = has_body_ && (request.method == "GET" || request.method == "HEAD")
                      ? Reply{.status = 400, .body = "A request here has no body.\n"}
                      : endpoints_.Answer(call);
    entry_.Unwatch();
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    response.body = std::move(reply.body);
    response.set_header("Content-Type", reply.type);
  }

  void Refuse(int status) {
    const std::string text(Reason(status));
    const std::string line = std::to_string(status) + " " + text;
    channel_.Write("HTTP/1.1 " + line + "\r\nConnection: close\r\nContent-Type: text/plain\r\n" +
                       "Content-Length: " + std::to_string(text.size() + 1) + "\r\n\r\n" + text +
                       "\n",
                   channel_.In(std::chrono::seconds(1)));
  }

  void End() {
    channel_.End();
    if (!closing_) return;
    // A socket closed with bytes unread makes the kernel throw away the answer at the other side.
    std::array<char, 4096> unread{};
    const MonotonicTime deadline = channel_.In(std::chrono::milliseconds(500));
    constexpr size_t kMostUnread = size_t{256} << 10;
    for (size_t all = 0; all < kMostUnread;) {
      const ptrdiff_t got = channel_.Read(unread.data(), unread.size(), deadline);
      if (got <= 0) return;
      all += static_cast<size_t>(got);
    }
  }

  Channel& channel_;
  Endpoints& endpoints_;
  OpenConnections::Entry& entry_;
  const ConversationLimits& limits_;
  RequestStream stream_;
  const bool loopback_;
  bool admitted_ = false;  // the request was read and understood
  bool has_body_ = false;
  bool closing_ = false;  // though the client did not ask for it
};

}  // namespace

void Converse(Channel& channel, Endpoints& endpoints, OpenConnections& connections,
              const ConversationLimits& limits) {
  OpenConnections::Entry entry(connections, channel.socket());
  if (!channel.Handshake(channel.In(limits.handshake))) return;
  try {
    Conversation(channel, endpoints, entry, limits).Run();
  } catch (const std::exception&) {
    // Out of memory, or a request that cpp-httplib trips over: this connection ends, no other.
  }
}

}  // namespace pyrometer
