// SPDX-License-Identifier: Apache-2.0
#include "config/agent_config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "config/agent_options.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string DescriptionOf(std::string_view text) {
  const Environment environment = [](const std::string& name) {
    return name == "P" ? std::optional<std::string>("hunter2") : std::nullopt;
  };
  return Describe(*ParseAgentConfig(text, "p.yaml", environment));
}

TEST(Describe, TellsWhatHappensByDefault) {
  EXPECT_EQ(DescriptionOf(""),
            "  samples   99 Hz on every CPU, windows of 10s, with kernel stacks\n"
            "  of        every process\n"
            "  pods      labels of pods from the container runtime, where there is one\n"
            "  server    127.0.0.1:4041 (no TLS)\n"
            "  sink      file: /var/lib/pyrometer/profiles (files, at most 1GiB, 168h)\n"
            "  spool     /var/lib/pyrometer/spool (at most 1GiB, 24h)\n"
            "  cache     /var/cache/pyrometer (at most 512MiB)\n"
            "  limits    1% of the machine's CPUs, 256MiB of memory\n");
}

TEST(Describe, TellsHowFunctionsAreNamedIfNotAsUsual) {
  EXPECT_THAT(DescriptionOf("demangle: full\ninlines: false"),
              HasSubstr("  names     in full, without frames of inlined calls\n"));
}

TEST(Describe, TellsWhatIsSentWhereAndHow) {
  const std::string text = DescriptionOf(R"(
labels: {cluster: blue}
relabel_configs: [{target_label: a, replacement: b}]
filter: {comms: [nginx], exclude_cgroups: [/x]}
server: {listen: ""}
spool: {max_size: 0}
cache: {directory: ""}
sinks:
  - {type: pyroscope, url: "https://p", basic_auth: {username: u, password: "${P}"}, tenant: t}
  - {type: parca, address: "http://parca:7070", bearer_token_file: /t}
  - {type: parca, name: uploads, address: "other:7070", upload_debuginfo: true}
  - {type: otlp, endpoint: "http://c:4318", headers: {X-Token: "${P}"}, retry: {at_least_once: true}}
)");
  EXPECT_THAT(text, HasSubstr("labels    cluster=blue\n"));
  EXPECT_THAT(text, HasSubstr("rules     1, which --explain PID shows at work\n"));
  EXPECT_THAT(text, HasSubstr("named [nginx] or in cgroups [], except in cgroups [/x]\n"));
  EXPECT_THAT(text, HasSubstr("server    none\n"));
  EXPECT_THAT(text, HasSubstr("spool     none\n"));
  EXPECT_THAT(text, HasSubstr("cache     none\n"));
  EXPECT_THAT(text, HasSubstr("https://p (pyroscope's push, TLS, basic auth, tenant t)\n"));
  EXPECT_THAT(text, HasSubstr("parca:7070 (parca, gRPC, no TLS, bearer token)\n"));
  EXPECT_THAT(text, HasSubstr("other:7070 (parca, gRPC, TLS, uploads debug information)\n"));
  EXPECT_THAT(text, HasSubstr("http://c:4318 (otlp, HTTP, no TLS, at least once)\n"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(Describe, TellsWherePodsAreFound) {
  EXPECT_THAT(DescriptionOf("kubernetes: {cri_socket: /run/x.sock, node_name: n1}"),
              HasSubstr("from the container runtime at /run/x.sock, node=n1\n"));
  EXPECT_THAT(DescriptionOf("kubernetes: {mode: kubelet, kubelet: {url: 'https://n:1'}}"),
              HasSubstr("labels of pods from the kubelet at https://n:1\n"));
  EXPECT_THAT(DescriptionOf("kubernetes: {mode: docker}"),
              HasSubstr("labels of containers from Docker or podman, where there is one\n"));
  const std::string server = "kubernetes: {node_name: n1, api: {url: 'https://a:1', ";
  EXPECT_THAT(DescriptionOf(server + "token_file: ''}}"),
              HasSubstr("where there is one, else the API server at https://a:1, node=n1\n"));
  EXPECT_THAT(DescriptionOf(server + "token_file: /proc/self/stat}}"), HasSubstr("else the API"));
  EXPECT_THAT(DescriptionOf(server + "token_file: /proc/self/none}}"),
              HasSubstr("where there is one, node=n1\n"))
      << "without its token nobody asks";
  EXPECT_THAT(
      DescriptionOf("kubernetes: {mode: cri, node_name: n1, node_labels: [zone, b], api: {url: "
                    "'https://a:1'}}"),
      HasSubstr("where there is one, node=n1, its labels zone, b from the API server\n"));
  EXPECT_THAT(DescriptionOf("kubernetes: {mode: off}"), HasSubstr("pods      no labels of pods\n"));
  EXPECT_THAT(DescriptionOf("kubernetes: {mode: off, kubelet: {url: 'https://n:1'}}"),
              HasSubstr("kubernetes.kubelet has no effect with this kubernetes.mode\n"));
}

TEST(Describe, SaysSoIfNothingIsSent) {
  EXPECT_THAT(DescriptionOf("sinks: []"), HasSubstr("none: profiles are only scraped"));
}

}  // namespace
}  // namespace pyrometer
