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

Result<std::unique_ptr<ProfileSink>> Make(const SinkConfig& config, const Clock& clock,
                                          const DebuginfoUploader* debuginfo) {
  switch (config.type) {
    case SinkType::kPyroscope:
      return AsSink(PyroscopeSink::Make({.url = config.url,
                                         .tenant = config.tenant,
                                         .ingest = config.ingest,
                                         .client = ClientOf(config)}));
    case SinkType::kParca:
      return AsSink(ParcaSink::Make({.address = config.url,
                                     .insecure = config.insecure,
                                     .client = ClientOf(config),
                                     .debuginfo = debuginfo}));
    case SinkType::kOtlp:
      return AsSink(OtlpSink::Make({.endpoint = config.url,
                                    .grpc = config.grpc,
                                    .insecure = config.insecure,
                                    .client = ClientOf(config)}));
    case SinkType::kFile:
      break;
  }
  return AsSink(ProfileDirectory::Open(
      {.directory = config.directory, .max_size = config.max_size, .max_age = config.max_age},
      clock));
}

}  // namespace

Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config, const Clock& clock,
                                              const DebuginfoUploader* debuginfo) {
  Result<std::unique_ptr<ProfileSink>> sink = Make(config, clock, debuginfo);
  if (!sink) return std::move(sink).error().With("sink " + config.name);
  return sink;
}

Result<std::unique_ptr<DebuginfoUploader>> MakeUploader(const SinkConfig& config,
                                                        const UploadParts& parts) {
  DebuginfoUploader::Options options;
  options.name = config.name;
  options.server = {.address = config.url, .insecure = config.insecure, .client = ClientOf(config)};
  options.retry = {.min_backoff = config.retry.min_backoff,
                   .max_backoff = config.retry.max_backoff};
  options.on_thread_start = parts.on_thread_start;
  Result<std::unique_ptr<DebuginfoUploader>> made =
      DebuginfoUploader::Make(std::move(options), parts.files, parts.clock, parts.log);
  if (!made) return std::move(made).error().With("sink " + config.name);
  return made;
}

}  // namespace pyrometer
