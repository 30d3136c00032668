// SPDX-License-Identifier: Apache-2.0
#include "metadata/http_getter.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/printable.h"
#include "base/system_error.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr size_t kLongestToken = 64 << 10;
constexpr size_t kLongestWords = 300;
constexpr size_t kLongestExplanation = 64 << 10;  // the body of a failure
constexpr curl_off_t kLongestRetryAfterSeconds = 3600;

struct FreeHandle {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;

struct Transfer {
  CURL* curl = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  const HttpGetter::Stream* stream = nullptr;
  size_t longest = 0;
  std::string body{};
  bool too_long = false;
  bool ended = false;  // by the stream

  static size_t Write(char* from, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const size_t offered = size * count;
    long status = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == HttpResponse::kOk && *transfer.stream) {
      transfer.ended = !(*transfer.stream)(std::string_view(from, offered));
      return transfer.ended ? 0 : offered;
    }
    const size_t longest = status == HttpResponse::kOk
                               ? transfer.longest
                               : std::min(transfer.longest, kLongestExplanation);
    transfer.too_long = offered > longest - transfer.body.size();
    if (transfer.too_long) return 0;  // less than offered ends the transfer
    transfer.body.append(from, offered);
    return offered;
  }

  static int Progress(void* self, curl_off_t /*to_receive*/, curl_off_t /*received*/,
                      curl_off_t /*to_send*/, curl_off_t /*sent*/) {
    return *static_cast<const Transfer*>(self)->cancelled ? 1 : 0;
  }
};

Result<std::string> Authorization(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLongestToken));
  const std::string token(Trim(text));
  const bool is_token = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !is_token) return Fail(ErrorCode::kInvalid, "{}: holds no token", path);
  return "Authorization: Bearer " + token;
}

// The library does not say why it cannot connect to a socket.
Result<void> CheckSocket(const std::string& path) {
  if (::access(path.c_str(), W_OK) == 0) return {};
  const int error = errno;
  if (error != EACCES) return SystemError(error, path);
  return Fail(
      ErrorCode::kPermission,
      "{}: permission denied; run the agent as root, or with a group that may write to this "
      "socket",
      path);
}

template <typename Value>
void Set(const Handle& handle, CURLoption option, Value value) {
  curl_easy_setopt(handle.get(), option, value);
}

void Prove(const Handle& handle, const HttpEndpoint& endpoint) {
  Set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!endpoint.verify) {
    Set(handle, CURLOPT_SSL_VERIFYPEER, 0L);
    Set(handle, CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (!endpoint.ca_file.empty()) {
    Set(handle, CURLOPT_CAINFO, endpoint.ca_file.c_str());
    Set(handle, CURLOPT_CAPATH, static_cast<char*>(nullptr));  // the system's would count too
    Set(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);
  }
}

void Limit(const Handle& handle, const HttpGetter::Limits& limits) {
  constexpr long kConnectMs = 5000;
  const long timeout = static_cast<long>(limits.timeout.count());
  Set(handle, CURLOPT_NOSIGNAL, 1L);
  Set(handle, CURLOPT_TIMEOUT_MS, timeout);
  Set(handle, CURLOPT_CONNECTTIMEOUT_MS, std::min(timeout, kConnectMs));
  if (limits.idle.count() > 0) {
    Set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.idle.count()));
  }
  Set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(handle, CURLOPT_NOPROXY, "*");
  Set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(handle, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs must not hold up Cancel
}

}  // namespace

Result<HttpResponse> HttpGetter::Get(const std::string& path, Limits limits,
                                     const Stream& stream) const {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (cancelled_) return Fail(ErrorCode::kIo, "{}: shutting down", endpoint_.url);
  const Handle handle(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (handle == nullptr) return Fail(ErrorCode::kInternal, "libcurl: cannot be initialized");
  std::unique_ptr<curl_slist, FreeList> headers(
      curl_slist_append(nullptr, "Accept: application/json"));
  if (!endpoint_.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string header, Authorization(endpoint_.token_file));
    curl_slist_append(headers.get(), header.c_str());
  }
  if (!endpoint_.unix_socket.empty()) {
    RETURN_IF_ERROR(CheckSocket(endpoint_.unix_socket));
    Set(handle, CURLOPT_UNIX_SOCKET_PATH, endpoint_.unix_socket.c_str());
  }
  Limit(handle, limits);
  Prove(handle, endpoint_);
  Transfer transfer{
      .curl = handle.get(), .cancelled = &cancelled_, .stream = &stream, .longest = limits.longest};
  std::array<char, CURL_ERROR_SIZE> words{};
  Set(handle, CURLOPT_ERRORBUFFER, words.data());
  Set(handle, CURLOPT_URL, (endpoint_.url + path).c_str());
  Set(handle, CURLOPT_HTTPHEADER, headers.get());
  Set(handle, CURLOPT_USERAGENT, "pyrometer");
  Set(handle, CURLOPT_WRITEFUNCTION, &Transfer::Write);
  Set(handle, CURLOPT_WRITEDATA, &transfer);
  Set(handle, CURLOPT_NOPROGRESS, 0L);
  Set(handle, CURLOPT_XFERINFOFUNCTION, &Transfer::Progress);
  Set(handle, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(handle.get());
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  // A failure is one even if its explanation was lost.
  const bool failed = status != 0 && status != HttpResponse::kOk;
  if (transfer.too_long && !failed) {
    return Fail(ErrorCode::kExhausted, "{}: sent more than {} bytes", endpoint_.url,
                limits.longest);
  }
  if (code != CURLE_OK && !transfer.ended && !failed) {
    const char* detail = words[0] != '\0' ? words.data() : curl_easy_strerror(code);
    return Fail(ErrorCode::kIo, "{}: {}", endpoint_.url, Printable(detail, kLongestWords));
  }
  HttpResponse response{.status = static_cast<int>(status), .body = std::move(transfer.body)};
  curl_off_t seconds = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) {
    response.retry_after = std::chrono::seconds(std::min(seconds, kLongestRetryAfterSeconds));
  }
  return response;
}

Error ErrorOf(const HttpResponse& response, std::string_view what) {
  constexpr int kForbidden = 403;
  // Not with 401: the token may be one that was replaced a moment ago.
  return Fail(response.status == kForbidden ? ErrorCode::kPermission : ErrorCode::kIo,
              "{}: HTTP status {}: {}", what, response.status,
              Printable(Trim(response.body), kLongestWords));
}

std::string InQuery(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

}  // namespace pyrometer
