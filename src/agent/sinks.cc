// SPDX-License-Identifier: Apache-2.0
#include "agent/sinks.h"

#include <utility>

#include "export/client_options.h"
#include "export/pyroscope_sink.h"

namespace pyrometer {
namespace {

ClientOptions ClientOf(const SinkConfig& config) {
  ClientOptions client{.timeout = config.timeout,
                       .headers = config.headers,
                       .bearer_token_file = config.bearer_token_file,
                       .tls = {.ca_file = config.tls.ca_file,
                               .cert_file = config.tls.cert_file,
                               .key_file = config.tls.key_file,
                               .server_name = config.tls.server_name}};
  if (config.basic_auth) {
    client.basic_auth = BasicAuth{.username = config.basic_auth->username,
                                  .password = config.basic_auth->password,
                                  .password_file = config.basic_auth->password_file};
  }
  return client;
}

// The sink, or its error, as what it is to its callers.
template <typename Sink>
Result<std::unique_ptr<ProfileSink>> AsSink(Result<std::unique_ptr<Sink>> made) {
  if (!made) return std::move(made).error();
  return std::unique_ptr<ProfileSink>(*std::move(made));
}

Result<std::unique_ptr<ProfileSink>> Make(const SinkConfig& config) {
  switch (config.type) {
    case SinkType::kPyroscope:
      return AsSink(PyroscopeSink::Make({.url = config.url,
                                         .tenant = config.tenant,
                                         .ingest = config.ingest,
                                         .client = ClientOf(config)}));
    default:
      break;
  }
  return Fail(ErrorCode::kUnsupported, "not yet");
}

}  // namespace

Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config) {
  Result<std::unique_ptr<ProfileSink>> sink = Make(config);
  if (!sink) return std::move(sink).error().With("sink " + config.name);
  return sink;
}

}  // namespace pyrometer
