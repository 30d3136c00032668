// SPDX-License-Identifier: Apache-2.0
#include "agent/sinks.h"

#include <utility>

#include "export/client_options.h"
#include "export/otlp_sink.h"
#include "export/parca_sink.h"
#include "export/profile_directory.h"
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

Result<std::unique_ptr<ProfileSink>> Make(const SinkConfig& config, const Clock& clock) {
  switch (config.type) {
    case SinkType::kPyroscope:
      return AsSink(PyroscopeSink::Make({.url = config.url,
                                         .tenant = config.tenant,
                                         .ingest = config.ingest,
                                         .client = ClientOf(config)}));
    case SinkType::kParca:
      return AsSink(ParcaSink::Make(
          {.address = config.url, .insecure = config.insecure, .client = ClientOf(config)}, clock));
    case SinkType::kOtlp:
      return AsSink(OtlpSink::Make({.endpoint = config.url,
                                    .grpc = config.grpc,
                                    .insecure = config.insecure,
                                    .client = ClientOf(config)},
                                   clock));
    case SinkType::kFile:
      break;
  }
  return AsSink(ProfileDirectory::Open(
      {.directory = config.directory, .max_size = config.max_size, .max_age = config.max_age},
      clock));
}

}  // namespace

Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config, const Clock& clock) {
  Result<std::unique_ptr<ProfileSink>> sink = Make(config, clock);
  if (!sink) return std::move(sink).error().With("sink " + config.name);
  return sink;
}

}  // namespace pyrometer
