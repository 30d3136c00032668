// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metadata/relabel_rule.h"
#include "pyrometer/demangling.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// How a client checks a server and shows who it is.
struct ClientTlsConfig {
  std::string ca_file;    // "": the system's
  std::string cert_file;  // of the client; read again for each connection, with its key
  std::string key_file;
  std::string server_name;  // expected in the certificate; "": the host's

  bool operator==(const ClientTlsConfig&) const = default;
};

struct BasicAuthConfig {
  std::string username;
  std::string password_file;  // one of the two
  std::string password;       // from the environment only

  bool operator==(const BasicAuthConfig&) const = default;
};

struct RetryConfig {
  std::chrono::nanoseconds min_backoff{std::chrono::milliseconds(500)};
  std::chrono::nanoseconds max_backoff{std::chrono::minutes(5)};
  // Also requests that may have arrived are sent again: they may be counted twice.
  bool at_least_once = false;

  bool operator==(const RetryConfig&) const = default;
};

enum class SinkType { kPyroscope, kParca, kOtlp, kFile };

// One destination of profiles. What a type has no use for keeps its default.
struct SinkConfig {
  SinkType type = SinkType::kFile;
  std::string name;  // unique; the label `sink` of its metrics, the name of its spool

  // Servers.
  // pyroscope: "http://host:4040"; parca: "host:7070"; otlp: "http://host:4318", with gRPC
  // "host:4317". The port of a http or https URL may be missing.
  std::string url;
  bool insecure = false;  // parca, otlp with gRPC: no TLS; HTTP: as `url` says
  bool grpc = false;      // otlp: gRPC instead of HTTP
  bool ingest = false;    // pyroscope: /ingest instead of push.v1
  std::string tenant;     // pyroscope
  std::chrono::nanoseconds timeout{std::chrono::seconds(10)};
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<BasicAuthConfig> basic_auth;
  std::string bearer_token_file;
  ClientTlsConfig tls;
  RetryConfig retry;
  uint32_t concurrency = 16;  // requests under way

  // Directories.
  std::string directory;
  uint64_t max_size = uint64_t{1} << 30;
  std::chrono::nanoseconds max_age{std::chrono::hours(7 * 24)};

  bool operator==(const SinkConfig&) const = default;
};

struct FilterConfig {
  std::vector<std::string> comms;
  std::vector<std::string> cgroups;
  std::vector<std::string> exclude_cgroups;

  bool operator==(const FilterConfig&) const = default;
};

struct ServerConfig {
  std::string listen = "127.0.0.1:4041";  // "": no server
  std::string cert_file;                  // both or neither
  std::string key_file;
  std::string bearer_token_file;

  bool operator==(const ServerConfig&) const = default;
};

struct SpoolConfig {
  std::string directory = "/var/lib/pyrometer/spool";
  uint64_t max_size = uint64_t{1} << 30;  // 0: no spool
  std::chrono::nanoseconds max_age{std::chrono::hours(24)};

  bool operator==(const SpoolConfig&) const = default;
};

struct LimitsConfig {
  double cpu = 0.01;  // share of all the machine's CPUs
  uint64_t memory = uint64_t{256} << 20;

  bool operator==(const LimitsConfig&) const = default;
};

enum class KubernetesMode {
  kAuto,     // kCri where there is such a container runtime, else kDocker, in a pod else kApi
  kCri,      // asks the node's container runtime
  kKubelet,  // asks the node's kubelet
  kApi,      // follows the node's pods by the API server; needs node_name
  kDocker,   // asks Docker or podman
  kOff,
};

struct KubeletConfig {
  std::string url{};  // "": port 10250 of the node, or of this host where its name is not known
  std::string token_file{"/var/run/secrets/kubernetes.io/serviceaccount/token"};  // "": none
  std::string ca_file{"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"};
  bool insecure_skip_verify = false;  // of the kubelet's certificate

  bool operator==(const KubeletConfig&) const = default;
};

struct ApiServerConfig {
  // "": is not asked. Never with mode kApi or with node_labels; else always, but with kAuto.
  std::string url{};
  std::string token_file{"/var/run/secrets/kubernetes.io/serviceaccount/token"};  // "": none
  std::string ca_file{"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"};

  bool operator==(const ApiServerConfig&) const = default;
};

// How labels of pods are found.
struct KubernetesConfig {
  KubernetesMode mode = KubernetesMode::kAuto;
  std::string node_name{};      // "": not known
  std::string cri_socket{};     // "": wherever one is found
  std::string docker_socket{};  // "": wherever one is found
  // Labels of pods that become labels of profiles, by the names that LabelNameOf() makes of theirs,
  // which are all different.
  std::vector<std::string> pod_labels{};
  // The same of the node's own labels. Not empty only with node_name and api.url.
  std::vector<std::string> node_labels{};
  KubeletConfig kubelet{};
  ApiServerConfig api{};
  std::vector<std::string> without_effect{};  // keys that were given, though `mode` does not look

  bool operator==(const KubernetesConfig&) const = default;
};

// What each sample has of its own, where it is to be a label of profiles.
struct SampleLabels {
  bool comm = false;
  bool pid = false;
  bool thread = false;

  bool Any() const { return comm || pid || thread; }
  bool operator==(const SampleLabels&) const = default;
};

// Where profiles go if nothing is configured: a directory of files, for the last week.
SinkConfig DefaultSink();

// What `pyrometer agent` does; made from one YAML file and the command line. Every key of the file
// is documented in packaging/pyrometer.yaml.
struct AgentConfig {
  Hertz frequency{99};
  bool kernel_stacks = true;
  bool inlines = true;  // functions that were inlined into others are frames
  bool dwarf = true;    // debug information is read
  Demangling demangling = Demangling::kSimple;
  bool sandbox = true;  // in which files of profiled programs are read
  std::chrono::nanoseconds window{std::chrono::seconds(10)};
  std::vector<std::pair<std::string, std::string>> labels;  // on every profile
  FilterConfig filter;
  SampleLabels sample_labels;                // on samples' profiles
  bool otel_service_name = true;             // is asked of processes' environment
  std::vector<RelabelRule> relabel_configs;  // each without a mistake
  ServerConfig server;
  SpoolConfig spool;
  LimitsConfig limits;
  KubernetesConfig kubernetes;
  std::vector<SinkConfig> sinks;  // none: profiles are only scraped
};

}  // namespace pyrometer
