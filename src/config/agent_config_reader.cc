// SPDX-License-Identifier: Apache-2.0
#include "config/agent_config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/byte_size.h"
#include "config/frequency.h"
#include "config/label.h"
#include "metadata/container_meta_labels.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

constexpr size_t kCommLength = 15;  // TASK_COMM_LEN without its null

// Pyroscope's defaults, the lowest of the servers': a longer label would lose every profile.
constexpr size_t kLongestLabelName = 1024;
constexpr size_t kLongestLabelValue = 2048;

constexpr size_t kMostLabelKeys = 32;  // servers take some 30 labels in all

void ReadLabels(ConfigSection& root, AgentConfig& config) {
  for (ConfigSection::NamedText& label : root.ReadTexts("labels")) {
    const std::string& name = label.node->key;
    std::string& value = label.value.text;
    const Result<void> checked = CheckLabel(name, value);
    if (!checked) {
      root.Complain("labels", *label.node, checked.error().message());
    } else if (name.starts_with("__")) {
      root.Complain("labels", *label.node,
                    "label names that begin with '__' are reserved for the servers");
    } else if (name.size() > kLongestLabelName || value.size() > kLongestLabelValue) {
      root.Complain("labels", *label.node,
                    "is too long for servers, which take names of 1024 and values of 2048 bytes");
    } else {
      config.labels.emplace_back(name, std::move(value));
    }
  }
}

// The kernel knows only so much of a name.
ValueKind<std::string> Comm() {
  ValueKind<std::string> kind = NonEmptyText();
  kind.parse = [any = std::move(kind.parse)](std::string_view text) {
    return any(text.substr(0, kCommLength));
  };
  return kind;
}

void ReadFilter(ConfigSection section, FilterConfig& filter) {
  section.ReadList("comms", filter.comms, Comm());
  section.ReadList("cgroups", filter.cgroups, NonEmptyText());
  section.ReadList("exclude_cgroups", filter.exclude_cgroups, NonEmptyText());
  section.RefuseOthers();
}

void ReadServer(ConfigSection section, ServerConfig& server) {
  section.Read("listen", server.listen, ListenAddress("no server"));
  section.Read("bearer_token_file", server.bearer_token_file, AbsolutePathOrNothing());
  ConfigSection tls = section.Section("tls");
  tls.Read("cert_file", server.cert_file, AbsolutePathOrNothing());
  tls.Read("key_file", server.key_file, AbsolutePathOrNothing());
  tls.RefuseOthers();
  if (server.cert_file.empty() != server.key_file.empty()) {
    section.Complain("tls", "needs both cert_file and key_file, or neither");
  }
  section.RefuseOthers();
}

void ReadSpool(ConfigSection section, SpoolConfig& spool) {
  section.Read("directory", spool.directory, AbsolutePath());
  section.Read("max_size", spool.max_size, ByteSize(kMebibyte, "no spool"));
  section.Read("max_age", spool.max_age, Duration({.least = 1s, .most = 366 * 24h}, "24h"));
  section.RefuseOthers();
}

ValueKind<Demangling> DemanglingByName() {
  return OneOf<Demangling>(
      {{"simple", Demangling::kSimple}, {"full", Demangling::kFull}, {"none", Demangling::kNone}});
}

void ReadSymbols(ConfigSection section, AgentConfig& config) {
  section.Read("dwarf", config.dwarf, Boolean());
  section.Read("demangle", config.demangling, DemanglingByName());
  section.RefuseOthers();
}

void ReadLimits(ConfigSection section, LimitsConfig& limits) {
  section.Read("cpu", limits.cpu, Percentage());
  section.Read("memory", limits.memory, ByteSize(64 * kMebibyte));
  section.RefuseOthers();
}

ValueKind<KubernetesMode> Mode() {
  return OneOf<KubernetesMode>({{"auto", KubernetesMode::kAuto},
                                {"cri", KubernetesMode::kCri},
                                {"kubelet", KubernetesMode::kKubelet},
                                {"api", KubernetesMode::kApi},
                                {"docker", KubernetesMode::kDocker},
                                {"off", KubernetesMode::kOff}});
}

ValueKind<std::string> HttpUrlOrNothing() {
  const ValueKind<std::string> url = HttpUrl();
  return {.parse = [url](std::string_view text) -> std::optional<std::string> {
            return text.empty() ? std::string() : url.parse(text);
          },
          .expected = url.expected};
}

void ReadKubelet(ConfigSection section, KubeletConfig& kubelet) {
  section.Read("url", kubelet.url, HttpUrlOrNothing());
  section.Read("token_file", kubelet.token_file, AbsolutePathOrNothing());
  section.Read("ca_file", kubelet.ca_file, AbsolutePathOrNothing());
  section.Read("insecure_skip_verify", kubelet.insecure_skip_verify, Boolean());
  section.RefuseOthers();
}

// Without a URL: where Kubernetes tells every pod that the API server is.
void ReadApiServer(ConfigSection section, const Environment& environment, ApiServerConfig& api) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("443");
  section.Read("url", api.url, HttpUrlOrNothing());
  if (api.url.empty() && !host.empty()) {
    const bool is_v6 = host.find(':') != std::string::npos;
    api.url = "https://" + (is_v6 ? "[" + host + "]" : host) + ":" + port;
  }
  section.Read("token_file", api.token_file, AbsolutePathOrNothing());
  section.Read("ca_file", api.ca_file, AbsolutePathOrNothing());
  section.RefuseOthers();
}

// Two that become one label of profiles would overwrite each other: `taken` are the names of
// others.
void ReadLabelKeys(ConfigSection& section, const char* key, std::set<std::string>& taken,
                   std::vector<std::string>& labels) {
  section.ReadList(key, labels, NonEmptyText());
  if (labels.size() > kMostLabelKeys) {
    section.Complain(key, fmt::format("are more than {}", kMostLabelKeys));
  }
  for (const std::string& label : labels) {
    const std::string name = LabelNameOf(label);
    const Result<void> checked = CheckLabel(name, "value");
    if (!checked || name.starts_with("__")) {
      section.Complain(key, fmt::format("'{}' can be no label of profiles", label));
    } else if (!taken.insert(name).second) {
      section.Complain(key, fmt::format("there is already a label '{}'", name));
    }
  }
}

void ReadMoreLabels(ConfigSection& section, KubernetesConfig& kubernetes) {
  std::set<std::string> taken = {"container",    "container_id",  "namespace",
                                 "node",         "pod",           "service_name",
                                 "systemd_unit", "workload_kind", "workload_name"};
  ReadLabelKeys(section, "pod_labels", taken, kubernetes.pod_labels);
  ReadLabelKeys(section, "node_labels", taken, kubernetes.node_labels);
}

// Forgets the API server where nobody asks it.
void CheckApiServer(ConfigSection& section, KubernetesConfig& kubernetes) {
  const bool has_both = !kubernetes.node_name.empty() && !kubernetes.api.url.empty();
  const bool is_needed = kubernetes.mode == KubernetesMode::kApi || !kubernetes.node_labels.empty();
  if (is_needed && kubernetes.node_name.empty()) {
    section.Complain("node_name", "is needed with mode api and with node_labels");
  }
  if (is_needed && kubernetes.api.url.empty()) {
    section.Complain("api", "needs a url outside of a cluster");
  }
  if (!is_needed && !(kubernetes.mode == KubernetesMode::kAuto && has_both)) kubernetes.api = {};
}

void ReadSampleLabels(ConfigSection& root, SampleLabels& labels) {
  std::vector<std::string> wanted;
  root.ReadList("sample_labels", wanted,
                OneOf<std::string>({{"comm", "comm"}, {"pid", "pid"}, {"thread", "thread"}}));
  const auto wants = [&](const char* label) { return std::ranges::count(wanted, label) > 0; };
  labels = {.comm = wants("comm"), .pid = wants("pid"), .thread = wants("thread")};
}

// Keys that are given, and that this mode does not look at.
std::vector<std::string> WithoutEffect(const ConfigSection& section,
                                       const KubernetesConfig& kubernetes) {
  using enum KubernetesMode;
  const KubernetesMode mode = kubernetes.mode;
  const std::pair<const char*, bool> keys[] = {
      {"cri_socket", mode == kCri || mode == kAuto},
      {"docker_socket", mode == kDocker || mode == kAuto},
      {"kubelet", mode == kKubelet},
      {"api", mode == kApi || !kubernetes.node_labels.empty() ||
                  (mode == kAuto && !kubernetes.node_name.empty())}};
  std::vector<std::string> keys_without;
  for (const auto& [key, has_effect] : keys) {
    if (!has_effect && section.Has(key)) keys_without.push_back(std::string("kubernetes.") + key);
  }
  return keys_without;
}

void ReadKubernetes(ConfigSection section, const Environment& environment,
                    KubernetesConfig& kubernetes) {
  section.Read("mode", kubernetes.mode, Mode());
  // The DaemonSet sets it; elsewhere there is no such variable, which is no mistake.
  kubernetes.node_name = environment("NODE_NAME").value_or("");
  section.Read("node_name", kubernetes.node_name, AnyText());
  section.Read("cri_socket", kubernetes.cri_socket, AbsolutePathOrNothing());
  section.Read("docker_socket", kubernetes.docker_socket, AbsolutePathOrNothing());
  ReadMoreLabels(section, kubernetes);
  ReadKubelet(section.Section("kubelet"), kubernetes.kubelet);
  ReadApiServer(section.Section("api"), environment, kubernetes.api);
  CheckApiServer(section, kubernetes);
  kubernetes.without_effect = WithoutEffect(section, kubernetes);
  const Result<void> node = CheckLabel("node", kubernetes.node_name);
  if (!kubernetes.node_name.empty() && !node) section.Complain("node_name", node.error().message());
  section.RefuseOthers();
}

}  // namespace

AgentConfig ReadAgentConfig(const ConfigNode& root, ConfigReading& reading) {
  AgentConfig config;
  ConfigSection section(&root, "", reading);
  section.Read("frequency", config.frequency.value, WholeNumber(1, kHighestFrequency.value));
  section.Read("window", config.window, Duration({.least = 1s, .most = 10min}, "10s"));
  section.Read("kernel_stacks", config.kernel_stacks, Boolean());
  section.Read("inlines", config.inlines, Boolean());
  ReadSymbols(section.Section("symbols"), config);
  section.Read("sandbox", config.sandbox, OneOf<bool>({{"on", true}, {"off", false}}));
  ReadLabels(section, config);
  ReadFilter(section.Section("filter"), config.filter);
  ReadSampleLabels(section, config.sample_labels);
  section.Read("otel_service_name", config.otel_service_name, Boolean());
  config.relabel_configs = ReadRelabelConfigs(section);
  ReadServer(section.Section("server"), config.server);
  ReadSpool(section.Section("spool"), config.spool);
  ReadLimits(section.Section("limits"), config.limits);
  ReadKubernetes(section.Section("kubernetes"), reading.environment, config.kubernetes);
  config.sinks = ReadSinks(section);
  section.RefuseOthers();
  return config;
}

}  // namespace pyrometer
