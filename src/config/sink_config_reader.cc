// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "config/agent_config_reader.h"
#include "config/byte_size.h"
#include "config/sink_headers.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kMostConcurrency = 256;
constexpr std::string_view kTenantHeader = "X-Scope-OrgID";

// "https://host:443" is the address "host:443" with a word about TLS before it.
struct SchemeAndRest {
  std::string scheme;  // "" if there is none
  std::string rest;
};

SchemeAndRest SplitScheme(const std::string& url) {
  constexpr std::string_view kEnd = "://";
  const size_t end = url.find(kEnd);
  if (end == std::string::npos) return {"", url};
  return {url.substr(0, end), url.substr(end + kEnd.size())};
}

bool HasHeader(const SinkConfig& sink, std::string_view name) {
  return std::ranges::any_of(
      sink.headers, [name](const auto& header) { return IsSameHeader(header.first, name); });
}

void ReadHeaders(ConfigSection& section, SinkConfig& sink) {
  for (ConfigSection::NamedText& header : section.ReadTexts("headers")) {
    const std::string& name = header.node->key;
    if (const auto why = WhyNoHeader(name, header.value.text)) {
      section.Complain("headers", *header.node, fmt::format("header '{}' {}", name, *why));
    } else if (HasHeader(sink, name)) {
      section.Complain("headers", *header.node, fmt::format("header '{}' is given twice", name));
    } else if (CarriesSecret(name) && !header.value.used_environment) {
      section.Complain("headers", *header.node,
                       fmt::format("a secret may not be written here; take '{}' from the "
                                   "environment: '${{NAME}}'",
                                   name));
    } else {
      sink.headers.emplace_back(name, std::move(header.value.text));
    }
  }
}

void ReadBasicAuth(ConfigSection& section, SinkConfig& sink) {
  ConfigSection basic = section.Section("basic_auth");
  BasicAuthConfig auth;
  basic.Read("username", auth.username, AnyText());
  basic.Read("password_file", auth.password_file, AbsolutePathOrNothing());
  basic.ReadSecret("password", auth.password, "password_file");
  basic.RefuseOthers();
  const bool has_password = basic.Has("password") || basic.Has("password_file");
  if (!has_password && !basic.Has("username")) return;
  if (auth.username.find(':') != std::string::npos) {
    basic.Complain("username", "may not have a colon (RFC 7617)");
  }
  if (!basic.Has("username")) section.Complain("basic_auth", "needs a username");
  if (!has_password) section.Complain("basic_auth", "needs password_file or password");
  if (!auth.password.empty() && !auth.password_file.empty()) {
    section.Complain("basic_auth", "has both password_file and password; give one of them");
  }
  sink.basic_auth = std::move(auth);
}

// All three would be the header Authorization.
void RefuseSeveralCredentials(ConfigSection& section, const SinkConfig& sink) {
  const int ways = (sink.basic_auth ? 1 : 0) + (sink.bearer_token_file.empty() ? 0 : 1) +
                   (HasHeader(sink, "Authorization") ? 1 : 0);
  if (ways < 2) return;
  section.Complain(sink.basic_auth ? "basic_auth" : "bearer_token_file",
                   "only one of basic_auth, bearer_token_file and the header Authorization can be "
                   "sent");
}

void ReadTls(ConfigSection& section, bool uses_tls, ClientTlsConfig& tls) {
  ConfigSection inner = section.Section("tls");
  inner.Read("ca_file", tls.ca_file, AbsolutePathOrNothing());
  inner.Read("cert_file", tls.cert_file, AbsolutePathOrNothing());
  inner.Read("key_file", tls.key_file, AbsolutePathOrNothing());
  inner.Read("server_name", tls.server_name, AnyText());
  inner.RefuseOthers();
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    section.Complain("tls", "needs both cert_file and key_file, or neither");
  }
  const bool is_empty = tls.ca_file.empty() && tls.cert_file.empty() && tls.key_file.empty() &&
                        tls.server_name.empty();
  if (!uses_tls && !is_empty) {
    section.Complain("tls",
                     "has no effect: http:// and 'insecure: true' mean no TLS; write https:// or "
                     "leave 'insecure' out");
  }
}

void ReadRetry(ConfigSection section, RetryConfig& retry) {
  section.Read("min_backoff", retry.min_backoff, Duration({.least = 10ms, .most = 1h}, "500ms"));
  section.Read("max_backoff", retry.max_backoff, Duration({.least = 10ms, .most = 24h}, "5m"));
  section.Read("at_least_once", retry.at_least_once, Boolean());
  section.RefuseOthers();
  if (retry.max_backoff < retry.min_backoff) {
    section.Complain(section.Has("max_backoff") ? "max_backoff" : "min_backoff",
                     "max_backoff is shorter than min_backoff");
  }
}

// What all servers have in common.
void ReadServerSink(ConfigSection& section, bool uses_tls, SinkConfig& sink) {
  section.Read("timeout", sink.timeout, Duration({.least = 100ms, .most = 10min}, "10s"));
  section.Read("concurrency", sink.concurrency, WholeNumber(1, kMostConcurrency));
  ReadHeaders(section, sink);
  ReadBasicAuth(section, sink);
  section.Read("bearer_token_file", sink.bearer_token_file, AbsolutePathOrNothing());
  RefuseSeveralCredentials(section, sink);
  ReadTls(section, uses_tls, sink.tls);
  ReadRetry(section.Section("retry"), sink.retry);
}

void Require(ConfigSection& section, std::string_view key, std::string_view expected) {
  if (section.Has(key)) return;
  section.Complain(key, fmt::format("is missing; expected {}", expected));
}

void ReadPyroscope(ConfigSection& section, SinkConfig& sink) {
  section.Read("url", sink.url, HttpUrl());
  Require(section, "url", HttpUrl().expected);
  section.Read("tenant", sink.tenant, AnyText());
  section.Read("api", sink.ingest, OneOf<bool>({{"push", false}, {"ingest", true}}));
  ReadServerSink(section, !sink.url.starts_with("http:"), sink);
  if (sink.tenant.empty()) return;
  if (const auto why = WhyNoHeader(kTenantHeader, sink.tenant)) section.Complain("tenant", *why);
  if (HasHeader(sink, kTenantHeader)) {
    section.Complain("tenant", fmt::format("is also given by the header {}", kTenantHeader));
  }
}

// A gRPC server's address, whose scheme may say whether to use TLS.
void ReadGrpcAddress(ConfigSection& section, std::string_view key, SinkConfig& sink) {
  section.Read(key, sink.url, GrpcEndpoint());
  Require(section, key, GrpcEndpoint().expected);
  SchemeAndRest address = SplitScheme(sink.url);
  if (section.Has("insecure") && !address.scheme.empty() &&
      sink.insecure != (address.scheme == "http")) {
    section.Complain("insecure", fmt::format("contradicts {}://", address.scheme));
  }
  if (address.scheme == "http") sink.insecure = true;
  sink.url = std::move(address.rest);
}

void ReadParca(ConfigSection& section, SinkConfig& sink) {
  section.Read("insecure", sink.insecure, Boolean());
  ReadGrpcAddress(section, "address", sink);
  section.Read("upload_debuginfo", sink.upload_debuginfo, Boolean());
  ReadServerSink(section, !sink.insecure, sink);
}

void ReadOtlp(ConfigSection& section, SinkConfig& sink) {
  section.Read("protocol", sink.grpc, OneOf<bool>({{"http", false}, {"grpc", true}}));
  section.Read("insecure", sink.insecure, Boolean());
  if (sink.grpc) {
    ReadGrpcAddress(section, "endpoint", sink);
    return ReadServerSink(section, !sink.insecure, sink);
  }
  section.Read("endpoint", sink.url, HttpUrl());
  Require(section, "endpoint", HttpUrl().expected);
  if (sink.insecure && sink.url.starts_with("https:")) {
    section.Complain("insecure", "contradicts https://");
  }
  sink.insecure = false;  // the URL says it
  ReadServerSink(section, !sink.url.starts_with("http:"), sink);
}

void ReadFileSink(ConfigSection& section, SinkConfig& sink) {
  section.Read("directory", sink.directory, AbsolutePath());
  Require(section, "directory", AbsolutePath().expected);
  section.Read("max_size", sink.max_size, ByteSize(kMebibyte));
  section.Read("max_age", sink.max_age, Duration({.least = 1min, .most = 366 * 24h}, "7d"));
}

struct TypeReader {
  std::string_view name;
  SinkType type;
  void (*read)(ConfigSection&, SinkConfig&);
};
constexpr TypeReader kTypes[] = {
    {"pyroscope", SinkType::kPyroscope, ReadPyroscope},
    {"parca", SinkType::kParca, ReadParca},
    {"otlp", SinkType::kOtlp, ReadOtlp},
    {"file", SinkType::kFile, ReadFileSink},
};

// Nothing if its type is unknown, and so what its keys mean.
std::optional<SinkConfig> ReadSink(ConfigSection& section) {
  std::vector<std::pair<std::string, const TypeReader*>> choices;
  for (const TypeReader& type : kTypes) choices.emplace_back(type.name, &type);
  const ValueKind<const TypeReader*> kind = OneOf(std::move(choices));
  const TypeReader* type = nullptr;
  section.Read("type", type, kind);
  Require(section, "type", kind.expected);
  if (type == nullptr) return std::nullopt;
  SinkConfig sink;
  sink.type = type->type;
  sink.name = type->name;
  section.Read("name", sink.name, SinkName());
  type->read(section, sink);
  section.RefuseOthers();
  return sink;
}

bool IsSameDirectory(const std::string& a, const std::string& b) {
  using std::filesystem::path;
  return (path(a) / "").lexically_normal() == (path(b) / "").lexically_normal();
}

void RefuseTwins(const std::vector<SinkConfig>& others, const SinkConfig& sink,
                 ConfigSection& section) {
  for (const SinkConfig& other : others) {
    if (other.name == sink.name) {
      section.Complain("name", fmt::format("two sinks have the name '{}' (by default it is the "
                                           "type); give each its own",
                                           sink.name));
    }
    if (!sink.directory.empty() && IsSameDirectory(other.directory, sink.directory)) {
      section.Complain("directory", "two sinks have the same directory");
    }
  }
}

}  // namespace

SinkConfig DefaultSink() {
  SinkConfig sink;
  sink.type = SinkType::kFile;
  sink.name = "file";
  sink.directory = "/var/lib/pyrometer/profiles";
  return sink;
}

std::vector<SinkConfig> ReadSinks(ConfigSection& root) {
  std::optional<std::vector<ConfigSection>> sections = root.Sections("sinks");
  if (!sections) return {DefaultSink()};
  std::vector<SinkConfig> sinks;
  for (ConfigSection& section : *sections) {
    std::optional<SinkConfig> sink = ReadSink(section);
    if (!sink) continue;
    RefuseTwins(sinks, *sink, section);
    sinks.push_back(*std::move(sink));
  }
  return sinks;
}

}  // namespace pyrometer
