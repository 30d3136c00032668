// SPDX-License-Identifier: Apache-2.0
#include "export/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/printable.h"
#include "export/not_arrived.h"

namespace pyrometer {
namespace {

constexpr size_t kAnswerBytes = 64 << 10;
constexpr long kConnectionSeconds = 300;
// Servers close idle connections at times of their own, a Go server's read timeout for example. A
// request that meets that end may have arrived or not; another handshake for each window is
// cheaper.
constexpr long kIdleSeconds = 3;
constexpr curl_off_t kLongestRetryAfterSeconds = 3600;
constexpr size_t kErrorBytes = 512;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

std::string PartOf(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return "";
  const std::unique_ptr<char, FreeText> owner(text);
  return text;
}

Result<Url> ParseUrl(const std::string& text) {
  Url url(curl_url());
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK) {
    return Fail(ErrorCode::kInvalid, "url \"{}\": {}", WithoutUser(text), curl_url_strerror(code));
  }
  const std::string scheme = PartOf(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return Fail(ErrorCode::kInvalid, "url \"{}\": begins with neither http:// nor https://",
                WithoutUser(text));
  }
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    if (!PartOf(url, part).empty()) {
      return Fail(ErrorCode::kInvalid, "url of {}: may have a host, a port and a path only",
                  PartOf(url, CURLUPART_HOST));
    }
  }
  return url;
}

enum class Stage { kConnecting, kTls, kRequest };

struct Failure {
  Stage stage;
  const char* reason;
};

Failure FailureOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {Stage::kConnecting, "resolve"};
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
      return {Stage::kConnecting, "connect"};
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return {Stage::kConnecting, "proxy"};
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return {Stage::kTls, "tls"};
    case CURLE_OPERATION_TIMEDOUT:
      return {Stage::kRequest, "timeout"};
    case CURLE_ABORTED_BY_CALLBACK:
      return {Stage::kRequest, "cancelled"};
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_FAIL_REWIND:
      return {Stage::kRequest, "connection_lost"};
    default:
      return {Stage::kRequest, "bad_answer"};
  }
}

}  // namespace

struct HttpClient::Transfer {
  std::string_view rest;   // of the body: what libcurl has not asked for yet
  bool was_asked = false;  // for any of it: there was a connection
  std::string answer;
  bool answer_cut = false;

  static size_t Read(char* to, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.was_asked = true;
    std::string_view& rest = transfer.rest;
    const std::string_view piece = rest.substr(0, size * count);
    std::memcpy(to, piece.data(), piece.size());
    rest.remove_prefix(piece.size());
    return piece.size();
  }

  static size_t Write(char* from, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const size_t room = kAnswerBytes - transfer.answer.size();
    const size_t taken = std::min(room, size * count);
    transfer.answer.append(from, taken);
    transfer.answer_cut |= taken < size * count;
    return taken;  // less than offered ends the transfer
  }

  static int Progress(void* client, curl_off_t /*to_receive*/, curl_off_t /*received*/,
                      curl_off_t /*to_send*/, curl_off_t /*sent*/) {
    return static_cast<const HttpClient*>(client)->cancelled_ ? 1 : 0;
  }
};

struct HttpClient::Handle {
  CURL* curl = curl_easy_init();
  std::unique_ptr<curl_slist, FreeList> connect_to;
  std::array<char, CURL_ERROR_SIZE> error{};

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { curl_easy_cleanup(curl); }

  // Whether all went well is known when the transfer is made.
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl, option, value);
  }
};

HttpClient::HttpClient(std::string url, ClientOptions options)
    : url_(std::move(url)), options_(std::move(options)) {}

HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::Make(std::string url, ClientOptions options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) {
    return Fail(ErrorCode::kInternal, "libcurl: {}", curl_easy_strerror(initialised));
  }
  RETURN_IF_ERROR(CheckClientOptions(options));
  ASSIGN_OR_RETURN(const Url parsed, ParseUrl(url));
  std::string connect_to;
  std::string host_header;
  const std::string& name = options.tls.server_name;
  if (PartOf(parsed, CURLUPART_SCHEME) == "https" && !name.empty()) {
    // libcurl expects in the certificate what is in the URL.
    const std::string host = PartOf(parsed, CURLUPART_HOST);
    const std::string port = PartOf(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    if (curl_url_set(parsed.get(), CURLUPART_HOST, name.c_str(), 0) != CURLUE_OK) {
      return Fail(ErrorCode::kInvalid, "tls: server_name \"{}\" is no host name", name);
    }
    connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
    const std::string own_port = PartOf(parsed, CURLUPART_PORT);
    host_header = own_port.empty() ? host : fmt::format("{}:{}", host, own_port);
  }
  url = PartOf(parsed, CURLUPART_URL);
  while (url.ends_with('/')) url.pop_back();
  std::unique_ptr<HttpClient> client(new HttpClient(std::move(url), std::move(options)));
  client->connect_to_ = std::move(connect_to);
  client->host_header_ = std::move(host_header);
  return client;
}

Result<std::unique_ptr<HttpClient::Handle>> HttpClient::TakeHandle() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Handle> handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return MakeHandle();
}

Result<std::unique_ptr<HttpClient::Handle>> HttpClient::MakeHandle() const {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  auto handle = std::make_unique<Handle>();
  if (handle->curl == nullptr) return Fail(ErrorCode::kExhausted, "libcurl: out of memory");
  Handle& to = *handle;
  to.Set(CURLOPT_ERRORBUFFER, to.error.data());
  to.Set(CURLOPT_NOSIGNAL, 1L);
  to.Set(CURLOPT_PROTOCOLS_STR, "http,https");
  to.Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  to.Set(CURLOPT_USERAGENT, "pyrometer/" PYROMETER_VERSION);
  to.Set(CURLOPT_TIMEOUT_MS, static_cast<long>(ceil<milliseconds>(options_.timeout).count()));
  const auto connect = std::min(options_.connect_timeout, options_.timeout);
  to.Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(ceil<milliseconds>(connect).count()));
  to.Set(CURLOPT_MAXCONNECTS, 1L);
  to.Set(CURLOPT_MAXLIFETIME_CONN, kConnectionSeconds);
  to.Set(CURLOPT_MAXAGE_CONN, kIdleSeconds);
  to.Set(CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs must not hold up Cancel
  // A body that cannot be rewound is not sent again by libcurl either, which would do so when a
  // kept connection turns out to be closed, though the server may have read the request. It does
  // connect again, and then tells of that: see Conclude.
  to.Set(CURLOPT_POST, 1L);
  to.Set(CURLOPT_READFUNCTION, &Transfer::Read);
  to.Set(CURLOPT_WRITEFUNCTION, &Transfer::Write);
  to.Set(CURLOPT_NOPROGRESS, 0L);
  to.Set(CURLOPT_XFERINFOFUNCTION, &Transfer::Progress);
  to.Set(CURLOPT_XFERINFODATA, this);
  to.Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // Each new connection proves both sides anew, by the files as they are then.
  to.Set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  if (!options_.tls.ca_file.empty()) {
    to.Set(CURLOPT_CAINFO, options_.tls.ca_file.c_str());
    to.Set(CURLOPT_CAPATH, static_cast<char*>(nullptr));  // the system's, which would count too
    to.Set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
  }
  if (!options_.tls.cert_file.empty()) {
    to.Set(CURLOPT_SSLCERT, options_.tls.cert_file.c_str());
    to.Set(CURLOPT_SSLKEY, options_.tls.key_file.c_str());
    to.Set(CURLOPT_KEYPASSWD, "");  // or a locked key would make OpenSSL ask the terminal
  }
  if (!connect_to_.empty()) {
    to.connect_to.reset(curl_slist_append(nullptr, connect_to_.c_str()));
    to.Set(CURLOPT_CONNECT_TO, to.connect_to.get());
  }
  return handle;
}

void HttpClient::GiveBack(std::unique_ptr<Handle> handle) {
  const std::lock_guard lock(mutex_);
  if (!cancelled_) idle_.push_back(std::move(handle));
}

void HttpClient::Cancel() {
  cancelled_ = true;
  std::vector<std::unique_ptr<Handle>> idle;
  const std::lock_guard lock(mutex_);
  idle.swap(idle_);
}

std::vector<std::string> HttpClient::HeadersOf(const Request& request,
                                               std::string_view authorization) const {
  std::vector<std::string> headers = request.headers;
  headers.emplace_back("Expect:");  // costs a round trip, and a second where it is ignored
  if (!host_header_.empty()) headers.push_back("Host: " + host_header_);
  if (!authorization.empty()) headers.push_back(fmt::format("Authorization: {}", authorization));
  for (const auto& [name, value] : options_.headers) {
    // "Name:" would mean to libcurl that this header is not to be sent.
    headers.push_back(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  return headers;
}

tl::expected<HttpAnswer, Receipt> HttpClient::Post(const Request& request) {
  if (cancelled_) return tl::unexpected(NotArrived("cancelled", "shutting down"));
  const Result<std::string> authorization = AuthorizationOf(options_);
  if (!authorization) {
    return tl::unexpected(NotArrived("credentials", authorization.error().message()));
  }
  Result<std::unique_ptr<Handle>> taken = TakeHandle();
  if (!taken) return tl::unexpected(NotArrived("no_memory", taken.error().message()));
  Handle& handle = **taken;
  std::unique_ptr<curl_slist, FreeList> headers;
  for (const std::string& header : HeadersOf(request, *authorization)) {
    curl_slist* longer = curl_slist_append(headers.get(), header.c_str());
    if (longer == nullptr) return tl::unexpected(NotArrived("no_memory", "out of memory"));
    std::ignore = headers.release();
    headers.reset(longer);
  }
  Transfer transfer{.rest = request.body, .answer = {}};
  const std::string url = url_ + request.path;
  handle.error[0] = '\0';
  handle.Set(CURLOPT_URL, url.c_str());
  handle.Set(CURLOPT_HTTPHEADER, headers.get());
  handle.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  handle.Set(CURLOPT_READDATA, &transfer);
  handle.Set(CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl_easy_perform(handle.curl);
  tl::expected<HttpAnswer, Receipt> result = Conclude(handle, transfer, code);
  handle.Set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  // A handle that failed may want to rewind the body of the request before.
  if (code == CURLE_OK) GiveBack(*std::move(taken));
  return result;
}

tl::expected<HttpAnswer, Receipt> HttpClient::Conclude(Handle& handle, Transfer& transfer,
                                                       int curl_code) {
  const auto code = static_cast<CURLcode>(curl_code);
  long status = 0;
  curl_easy_getinfo(handle.curl, CURLINFO_RESPONSE_CODE, &status);
  const bool whole = code == CURLE_OK || transfer.answer_cut;
  constexpr long kFirstFailure = 300;
  // A failure is one even if its explanation was lost.
  if (status != 0 && (whole || status >= kFirstFailure)) {
    HttpAnswer answer{.status = static_cast<int>(status), .body = std::move(transfer.answer)};
    curl_off_t seconds = 0;
    curl_easy_getinfo(handle.curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) {
      answer.retry_after = std::chrono::seconds(std::min(seconds, kLongestRetryAfterSeconds));
    }
    return answer;
  }
  const Failure failure = FailureOf(code);
  const char* detail = handle.error[0] != '\0' ? handle.error.data() : curl_easy_strerror(code);
  Receipt receipt = NotArrived(failure.reason, Printable(detail, kErrorBytes));
  // That no connection could be made may be said of a second one: the server may have read the
  // whole request, from a kept connection that it closed without an answer.
  const bool is_sent = transfer.was_asked || failure.stage == Stage::kRequest;
  if (!is_sent || !transfer.rest.empty()) return tl::unexpected(std::move(receipt));
  if (failure.stage != Stage::kRequest) receipt.reason = "connection_lost";
  // With TLS 1.3 a server refuses our certificate only after we have sent the first request of a
  // connection, unread.
  long connections = 0;
  curl_easy_getinfo(handle.curl, CURLINFO_NUM_CONNECTS, &connections);
  if (status == 0 && failure.stage == Stage::kRequest && connections > 0 &&
      receipt.message.find(" alert ") != std::string::npos) {
    receipt.reason = "tls";
    return tl::unexpected(std::move(receipt));
  }
  receipt.outcome = Outcome::kMaybeArrived;
  return tl::unexpected(std::move(receipt));
}

}  // namespace pyrometer
