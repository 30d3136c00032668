// SPDX-License-Identifier: Apache-2.0
#include "config/agent_config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "config/byte_size.h"
#include "config/duration.h"

namespace pyrometer {
namespace {

std::string Line(std::string_view what, std::string_view text) {
  return fmt::format("  {:<9} {}\n", what, text);
}

std::string Kept(uint64_t max_size, std::chrono::nanoseconds max_age) {
  return fmt::format("at most {}, {}", FormatByteSize(max_size), FormatDuration(max_age));
}

std::string FilterText(const FilterConfig& filter) {
  std::string text = "every process";
  if (!filter.comms.empty() || !filter.cgroups.empty()) {
    text = fmt::format("processes named [{}] or in cgroups [{}]", fmt::join(filter.comms, ", "),
                       fmt::join(filter.cgroups, ", "));
  }
  if (!filter.exclude_cgroups.empty()) {
    text += fmt::format(", except in cgroups [{}]", fmt::join(filter.exclude_cgroups, ", "));
  }
  return text;
}

std::string_view Protocol(const SinkConfig& sink) {
  switch (sink.type) {
    case SinkType::kPyroscope:
      return sink.ingest ? "pyroscope's /ingest" : "pyroscope's push";
    case SinkType::kParca:
      return "parca, gRPC";
    case SinkType::kOtlp:
      return sink.grpc ? "otlp, gRPC" : "otlp, HTTP";
    case SinkType::kFile:
      break;
  }
  return "files";
}

std::string_view Credentials(const SinkConfig& sink) {
  if (sink.basic_auth) return ", basic auth";
  if (!sink.bearer_token_file.empty()) return ", bearer token";
  return "";
}

bool UsesTls(const SinkConfig& sink) {
  const bool is_grpc = sink.type == SinkType::kParca || sink.grpc;
  return is_grpc ? !sink.insecure : sink.url.starts_with("https:");
}

std::string SinkText(const SinkConfig& sink) {
  if (sink.type == SinkType::kFile) {
    return fmt::format("{} ({}, {})", sink.directory, Protocol(sink),
                       Kept(sink.max_size, sink.max_age));
  }
  return fmt::format("{} ({}, {}{}{}{})", sink.url, Protocol(sink),
                     UsesTls(sink) ? "TLS" : "no TLS", Credentials(sink),
                     sink.tenant.empty() ? "" : ", tenant " + sink.tenant,
                     sink.retry.at_least_once ? ", at least once" : "");
}

std::string ServerText(const ServerConfig& server) {
  if (server.listen.empty()) return "none";
  return fmt::format("{} ({}{})", server.listen, server.cert_file.empty() ? "no TLS" : "TLS",
                     server.bearer_token_file.empty() ? "" : ", bearer token");
}

std::string At(const std::string& socket) {
  return socket.empty() ? ", where there is one" : " at " + socket;
}

std::string SourceText(const KubernetesConfig& kubernetes) {
  switch (kubernetes.mode) {
    case KubernetesMode::kOff:
      return "no labels of pods";
    case KubernetesMode::kKubelet:
      return "labels of pods from the kubelet" +
             (kubernetes.kubelet.url.empty() ? "" : " at " + kubernetes.kubelet.url);
    case KubernetesMode::kApi:
      return "labels of pods from the API server at " + kubernetes.api.url;
    case KubernetesMode::kDocker:
      return "labels of containers from Docker or podman" + At(kubernetes.docker_socket);
    case KubernetesMode::kAuto:
    case KubernetesMode::kCri:
      break;
  }
  const std::string runtime =
      "labels of pods from the container runtime" + At(kubernetes.cri_socket);
  const bool has_other = kubernetes.mode == KubernetesMode::kAuto && !kubernetes.api.url.empty();
  return has_other ? runtime + ", else the API server at " + kubernetes.api.url : runtime;
}

std::string PodsText(const KubernetesConfig& kubernetes) {
  std::string text = SourceText(kubernetes);
  const bool has_node = kubernetes.mode != KubernetesMode::kOff && !kubernetes.node_name.empty();
  if (has_node) text += ", node=" + kubernetes.node_name;
  if (!kubernetes.node_labels.empty()) {
    text +=
        fmt::format(", its labels {} from the API server", fmt::join(kubernetes.node_labels, ", "));
  }
  return text;
}

}  // namespace

std::string Describe(const AgentConfig& config) {
  std::string text =
      Line("samples", fmt::format("{} Hz on every CPU, windows of {}, {} kernel stacks",
                                  config.frequency.value, FormatDuration(config.window),
                                  config.kernel_stacks ? "with" : "without"));
  text += Line("of", FilterText(config.filter));
  if (!config.sandbox)
    text += Line("warning", "sandbox is off: foreign files are read by the agent");
  std::vector<std::string> labels;
  for (const auto& [name, value] : config.labels) {
    labels.push_back(fmt::format("{}={}", name, value));
  }
  if (!labels.empty()) text += Line("labels", fmt::format("{}", fmt::join(labels, " ")));
  text += Line("pods", PodsText(config.kubernetes));
  for (const std::string& key : config.kubernetes.without_effect) {
    text += Line("warning", key + " has no effect with this kubernetes.mode");
  }
  if (!config.relabel_configs.empty()) {
    text += Line("rules", fmt::format("{}, which --explain PID shows at work",
                                      config.relabel_configs.size()));
  }
  text += Line("server", ServerText(config.server));
  for (const SinkConfig& sink : config.sinks) {
    text += Line("sink", fmt::format("{}: {}", sink.name, SinkText(sink)));
  }
  if (config.sinks.empty()) text += Line("sink", "none: profiles are only scraped");
  const SpoolConfig& spool = config.spool;
  text += Line("spool", spool.max_size == 0 ? "none"
                                            : fmt::format("{} ({})", spool.directory,
                                                          Kept(spool.max_size, spool.max_age)));
  text +=
      Line("limits", fmt::format("{:g}% of the machine's CPUs, {} of memory",
                                 config.limits.cpu * 100, FormatByteSize(config.limits.memory)));
  return text;
}

}  // namespace pyrometer
