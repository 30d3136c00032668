// SPDX-License-Identifier: Apache-2.0
#include "config/agent_options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/config/parsed_config.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;
using namespace std::chrono_literals;

// A directory with a configuration file, for as long as this lives.
class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text) {
    std::string name = testing::TempDir() + "/pyrometer-config-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    Write(text);
  }
  ~ConfigFile() { std::filesystem::remove_all(directory_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  std::string path() const { return (directory_ / "pyrometer.yaml").string(); }
  void Write(std::string_view text) { std::ofstream(path()) << text; }

 private:
  std::filesystem::path directory_;
};

TEST(ParseAgentConfig, KeepsAWeekOfFilesByDefault) {
  for (const char* text : {"", "# nothing\n", "---\n", "sinks:\n", "~"}) {
    const AgentConfig config = Parse(text);
    EXPECT_EQ(config.frequency.value, 99U);
    EXPECT_EQ(config.window, 10s);
    EXPECT_TRUE(config.kernel_stacks);
    EXPECT_TRUE(config.inlines);
    EXPECT_TRUE(config.dwarf);
    EXPECT_EQ(config.demangling, Demangling::kSimple);
    EXPECT_EQ(config.server.listen, "127.0.0.1:4041");
    EXPECT_EQ(config.spool.directory, "/var/lib/pyrometer/spool");
    ASSERT_THAT(config.sinks, SizeIs(1)) << text;
    EXPECT_EQ(config.sinks[0].type, SinkType::kFile);
    EXPECT_EQ(config.sinks[0].name, "file");
    EXPECT_EQ(config.sinks[0].directory, "/var/lib/pyrometer/profiles");
    EXPECT_EQ(config.sinks[0].max_size, uint64_t{1} << 30);
    EXPECT_EQ(config.sinks[0].max_age, 7 * 24h);
  }
}

TEST(ParseAgentConfig, SendsNothingIfTheListOfSinksIsEmpty) {
  EXPECT_THAT(Parse("sinks: []").sinks, IsEmpty());
}

TEST(ParseAgentConfig, ReadsWhatIsSampledAndWhatItMayCost) {
  const AgentConfig config = Parse(R"(
frequency: 499
window: 1m30s
kernel_stacks: false
inlines: false
symbols: { dwarf: false, demangle: full }
sandbox: off
labels: { cluster: blue, version: 1.10 }
filter: { comms: [nginx, a-name-beyond-the-kernels], cgroups: [/a, /a], exclude_cgroups: [b] }
limits: { cpu: 2.5%, memory: 1GiB }
)");
  EXPECT_EQ(config.frequency.value, 499U);
  EXPECT_EQ(config.window, 90s);
  EXPECT_FALSE(config.kernel_stacks);
  EXPECT_FALSE(config.inlines);
  EXPECT_FALSE(config.dwarf);
  EXPECT_EQ(config.demangling, Demangling::kFull);
  EXPECT_FALSE(config.sandbox);
  EXPECT_THAT(config.labels, ElementsAre(Pair("cluster", "blue"), Pair("version", "1.10")));
  EXPECT_THAT(config.filter.comms, ElementsAre("nginx", "a-name-beyond-t"));
  EXPECT_THAT(config.filter.cgroups, ElementsAre("/a"));
  EXPECT_THAT(config.filter.exclude_cgroups, ElementsAre("b"));
  EXPECT_DOUBLE_EQ(config.limits.cpu, 0.025);
  EXPECT_EQ(config.limits.memory, uint64_t{1} << 30);
}

TEST(ParseAgentConfig, ReadsWherePodsAreFound) {
  EXPECT_EQ(Parse("").kubernetes, KubernetesConfig());
  EXPECT_THAT(
      Parse("kubernetes: { pod_labels: [team, app.kubernetes.io/version] }").kubernetes.pod_labels,
      testing::ElementsAre("team", "app.kubernetes.io/version"));
  const AgentConfig config =
      Parse("kubernetes: { mode: cri, node_name: n1, cri_socket: /run/x.sock }");
  EXPECT_EQ(config.kubernetes,
            (KubernetesConfig{
                .mode = KubernetesMode::kCri, .node_name = "n1", .cri_socket = "/run/x.sock"}));
  EXPECT_EQ(Parse("kubernetes: { mode: kubelet, docker_socket: /d, kubelet: { url: 'https://n:1', "
                  "token_file: '', ca_file: /ca, insecure_skip_verify: true } }")
                .kubernetes,
            (KubernetesConfig{.mode = KubernetesMode::kKubelet,
                              .docker_socket = "/d",
                              .kubelet = {.url = "https://n:1",
                                          .token_file = "",
                                          .ca_file = "/ca",
                                          .insecure_skip_verify = true},
                              .without_effect = {"kubernetes.docker_socket"}}));
  EXPECT_EQ(Parse("kubernetes: { mode: off }").kubernetes.mode, KubernetesMode::kOff);
}

TEST(ParseAgentConfig, TakesTheApiServerOfAPodInModeAuto) {
  const auto read = [](std::string_view text) {
    return ParseAgentConfig(text, "p.yaml",
                            [](const std::string& name) {
                              return name == "KUBERNETES_SERVICE_HOST"
                                         ? std::optional<std::string>("10.0.0.1")
                                         : std::nullopt;
                            })
        ->kubernetes;
  };
  EXPECT_EQ(read("kubernetes: {node_name: n1}").api.url, "https://10.0.0.1:443");
  EXPECT_EQ(read("").api, ApiServerConfig()) << "of which node is not known";
  EXPECT_EQ(read("kubernetes: {mode: cri, node_name: n1}").api, ApiServerConfig());
}

TEST(ParseAgentConfig, ReadsWhichLabelsOfTheNodeAreWanted) {
  const KubernetesConfig config =
      Parse(
          "kubernetes: {mode: cri, node_name: n1, node_labels: [a/zone, "
          "region], api: {url: 'https://a'}}")
          .kubernetes;
  EXPECT_EQ(config.node_labels, (std::vector<std::string>{"a/zone", "region"}));
  EXPECT_EQ(config.api.url, "https://a") << "though the mode does not ask it for pods";
  EXPECT_EQ(config.without_effect, std::vector<std::string>());
  const std::pair<const char*, const char*> wrong[] = {
      {"node_labels: [zone], api: {url: 'https://a'}",
       "is needed with mode api and with node_labels"},
      {"node_labels: [zone], node_name: n", "needs a url outside of a cluster"},
      {"node_labels: [zone, a/b], pod_labels: [a.b], node_name: n, api: {url: 'https://a'}",
       "there is already a label 'a_b'"},
      {"node_labels: [node], node_name: n, api: {url: 'https://a'}",
       "there is already a label 'node'"},
  };
  for (const auto& [text, complaint] : wrong) {
    const auto parsed = ParseAgentConfig(fmt::format("kubernetes: {{{}}}", text), "p.yaml",
                                         [](const std::string&) { return std::nullopt; });
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr(complaint));
  }
}

TEST(ParseAgentConfig, TellsWhichKeysOfPodsHaveNoEffect) {
  using Texts = std::vector<std::string>;
  const auto keys = [](const std::string& kubernetes) {
    return Parse("kubernetes: {" + kubernetes + "}").kubernetes.without_effect;
  };
  const std::string all =
      "node_name: n, cri_socket: /c, docker_socket: /d, "
      "api: {url: 'https://a'}, kubelet: {url: 'https://k'}";
  EXPECT_EQ(keys(all), Texts{"kubernetes.kubelet"});
  EXPECT_EQ(keys("mode: cri, " + all),
            (Texts{"kubernetes.docker_socket", "kubernetes.kubelet", "kubernetes.api"}));
  EXPECT_EQ(keys("mode: api, " + all),
            (Texts{"kubernetes.cri_socket", "kubernetes.docker_socket", "kubernetes.kubelet"}));
  EXPECT_EQ(keys("api: {url: 'https://a'}"), Texts{"kubernetes.api"}) << "without node_name";
}

TEST(ParseAgentConfig, TakesTheNodesNameFromTheEnvironment) {
  const auto name_of = [](std::string_view text) {
    return ParseAgentConfig(text, "p.yaml",
                            [](const std::string& name) {
                              return name == "NODE_NAME" ? std::optional<std::string>("n2")
                                                         : std::nullopt;
                            })
        ->kubernetes.node_name;
  };
  EXPECT_EQ(name_of(""), "n2");
  EXPECT_EQ(name_of("kubernetes: {node_name: n1}"), "n1");
  EXPECT_EQ(name_of("kubernetes: {node_name: ''}"), "");
}

TEST(ParseAgentConfig, ReadsTheServerAndTheSpool) {
  const AgentConfig config = Parse(R"(
server: { listen: "[::]:0", bearer_token_file: /t, tls: { cert_file: /c, key_file: /k } }
spool: { directory: /s, max_size: 0, max_age: 1d12h }
)");
  EXPECT_EQ(config.server.listen, "[::]:0");
  EXPECT_EQ(config.server.bearer_token_file, "/t");
  EXPECT_EQ(config.server.cert_file, "/c");
  EXPECT_EQ(config.server.key_file, "/k");
  EXPECT_EQ(config.spool.directory, "/s");
  EXPECT_EQ(config.spool.max_size, 0U);
  EXPECT_EQ(config.spool.max_age, 36h);
  EXPECT_EQ(Parse("server: { listen: \"\" }").server.listen, "");
}

TEST(ParseAgentConfig, ReadsEveryKeyOfAServersSink) {
  const SinkConfig sink = ParseSink(R"(
    type: pyroscope, name: cloud, url: "https://p.example.com/x", tenant: team, api: ingest,
    timeout: 3s, concurrency: 4, headers: { X-A: b, X-Api-Key: "${PASSWORD}" },
    basic_auth: { username: u, password: "${PASSWORD}" },
    tls: { ca_file: /ca, cert_file: /c, key_file: /k, server_name: s },
    retry: { min_backoff: 1s, max_backoff: 2m, at_least_once: true })");
  EXPECT_EQ(sink.type, SinkType::kPyroscope);
  EXPECT_EQ(sink.name, "cloud");
  EXPECT_EQ(sink.url, "https://p.example.com/x");
  EXPECT_EQ(sink.tenant, "team");
  EXPECT_TRUE(sink.ingest);
  EXPECT_EQ(sink.timeout, 3s);
  EXPECT_EQ(sink.concurrency, 4U);
  EXPECT_THAT(sink.headers, ElementsAre(Pair("X-A", "b"), Pair("X-Api-Key", "hunter2")));
  ASSERT_TRUE(sink.basic_auth.has_value());
  EXPECT_EQ(sink.basic_auth->username, "u");
  EXPECT_EQ(sink.basic_auth->password, "hunter2");
  EXPECT_EQ(sink.tls.ca_file, "/ca");
  EXPECT_EQ(sink.tls.cert_file, "/c");
  EXPECT_EQ(sink.tls.key_file, "/k");
  EXPECT_EQ(sink.tls.server_name, "s");
  EXPECT_EQ(sink.retry.min_backoff, 1s);
  EXPECT_EQ(sink.retry.max_backoff, 2min);
  EXPECT_TRUE(sink.retry.at_least_once);
}

TEST(ParseAgentConfig, ReadsAFileOfAllSections) {
  const AgentConfig config = Parse(R"(
frequency: 99                      # Hz per CPU
window: 10s
labels: { cluster: blue }          # on every profile
filter: { comms: [], cgroups: [], exclude_cgroups: [] }
server: { listen: "127.0.0.1:4041", tls: { cert_file: "", key_file: "" }, bearer_token_file: "" }
spool: { directory: /var/lib/pyrometer/spool, max_size: 1GiB, max_age: 24h }
limits: { cpu: 1%, memory: 256MiB }
sinks:
  - { type: pyroscope, url: "http://pyroscope:4040", tenant: "" }
  - { type: parca, address: "parca:7070", insecure: true }
  - { type: otlp, endpoint: "http://collector:4318", protocol: http }
  - { type: file, directory: /var/lib/pyrometer/profiles, max_size: 1GiB, max_age: 7d }
)");
  ASSERT_THAT(config.sinks, SizeIs(4));
  EXPECT_EQ(config.sinks[0].type, SinkType::kPyroscope);
  EXPECT_EQ(config.sinks[1].url, "parca:7070");
  EXPECT_TRUE(config.sinks[1].insecure);
  EXPECT_FALSE(config.sinks[2].grpc);
  EXPECT_EQ(config.sinks[3].max_age, 7 * 24h);
}

TEST(ParseAgentConfig, TakesTheTypeForAName) {
  EXPECT_EQ(ParseSink("type: parca, address: 'p:7070'").name, "parca");
  EXPECT_EQ(ParseSink("type: otlp, endpoint: 'http://c:4318'").name, "otlp");
}

TEST(ParseAgentConfig, ReadsWhetherGrpcUsesTls) {
  struct Case {
    const char* keys;
    const char* url;
    bool insecure;
  };
  for (const auto& [keys, url, insecure] : std::vector<Case>{
           {"type: parca, address: 'p:7070'", "p:7070", false},
           {"type: parca, address: '[::1]:7070', insecure: true", "[::1]:7070", true},
           {"type: parca, address: 'http://p:7070'", "p:7070", true},
           {"type: parca, address: 'https://p:7070', insecure: false", "p:7070", false},
           {"type: otlp, protocol: grpc, endpoint: 'c:4317'", "c:4317", false},
           {"type: otlp, protocol: grpc, endpoint: 'http://c:4317'", "c:4317", true}}) {
    const SinkConfig sink = ParseSink(keys);
    EXPECT_EQ(sink.url, url) << keys;
    EXPECT_EQ(sink.insecure, insecure) << keys;
  }
  EXPECT_EQ(ParseSink("type: otlp, endpoint: 'http://c:4318'").url, "http://c:4318");
}

TEST(ParseAgentConfig, TakesValuesFromTheEnvironment) {
  const AgentConfig config = Parse(R"(
frequency: ${FREQUENCY}
labels: { a: "x-${WORDS}-$1-${1}-$$-$${URL}", b: "${DOLLAR}" }
sinks: [{ type: pyroscope, url: "${URL}", tenant: "${EMPTY}" }]
)");
  EXPECT_EQ(config.frequency.value, 49U);
  EXPECT_THAT(config.labels,
              ElementsAre(Pair("a", "x-a: [b-$1-${1}-$-${URL}"), Pair("b", "${URL}")));
  EXPECT_EQ(config.sinks[0].url, "http://pyroscope:4040");
}

TEST(ExamineAgentConfig, FindsAllErrorsOfAFile) {
  const ConfigFile file("window: 1\nfrequncy: 9\nsinks:\n  - type: pyroscope\n  - typ: x\n");
  AgentOptions options;
  options.config_file = file.path();
  options.listen = "nowhere";
  const AgentConfigReport report = ExamineAgentConfig(options, Variable);
  EXPECT_THAT(report.errors,
              ElementsAre(HasSubstr(":1:9: window: "), StartsWith("--listen: found 'nowhere'"),
                          HasSubstr(":4:5: sinks[0].url: is missing"),
                          HasSubstr(":5:5: sinks[1].type: is missing"),
                          HasSubstr(":2:1: frequncy: unknown key")));
  EXPECT_EQ(report.file, file.path());
  EXPECT_THAT(MakeAgentConfig(options, Variable).error().message(),
              HasSubstr("(and 4 more: pyrometer agent --check-config)"));
}

TEST(ExamineAgentConfig, StopsSomewhereInAFileThatIsNoConfiguration) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += fmt::format("key{}: x\n", i);
  const ConfigFile file(text);
  AgentOptions options;
  options.config_file = file.path();
  const AgentConfigReport report = ExamineAgentConfig(options, Variable);
  ASSERT_THAT(report.errors, SizeIs(101));
  EXPECT_EQ(report.errors.back(), "400 more errors");
}

TEST(MakeAgentConfig, PutsTheOptionsOverTheFileEachTime) {
  ConfigFile file("frequency: 49\nwindow: 5s\nlabels: {a: x, b: y}\nfilter: {comms: [old]}\n");
  AgentOptions options;
  options.config_file = file.path();
  options.frequency = "499";
  options.labels = {"b=z", "c=$$1"};
  options.comms = {"new"};
  options.cgroups = {"/c"};
  options.exclude_cgroups = {"/e"};
  options.listen = "127.0.0.1:0";
  options.spool_directory = "/s";
  options.no_kernel = true;
  const AgentConfig first = *MakeAgentConfig(options, Variable);
  EXPECT_EQ(first.frequency.value, 499U);
  EXPECT_EQ(first.window, 5s);
  EXPECT_THAT(first.labels, ElementsAre(Pair("a", "x"), Pair("b", "z"), Pair("c", "$$1")));
  EXPECT_THAT(first.filter.comms, ElementsAre("new"));
  EXPECT_THAT(first.filter.cgroups, ElementsAre("/c"));
  EXPECT_THAT(first.filter.exclude_cgroups, ElementsAre("/e"));
  EXPECT_EQ(first.server.listen, "127.0.0.1:0");
  EXPECT_EQ(first.spool.directory, "/s");
  EXPECT_FALSE(first.kernel_stacks);
  file.Write("frequency: 59\nwindow: 6s\n");
  const AgentConfig second = *MakeAgentConfig(options, Variable);
  EXPECT_EQ(second.frequency.value, 499U);
  EXPECT_EQ(second.window, 6s);
}

TEST(MakeAgentConfig, ReplacesTheFilesSinksByThoseOfTheOptions) {
  const ConfigFile file("sinks: [{type: parca, address: 'old:1'}]");
  AgentOptions options;
  options.config_file = file.path();
  options.pyroscope_urls = {"http://p:4040", "http://q:4040"};
  options.parca_addresses = {"http://parca:7070"};
  options.otlp_endpoints = {"http://c:4318"};
  options.output_directories = {"profiles"};
  const AgentConfig config = *MakeAgentConfig(options, Variable);
  ASSERT_THAT(config.sinks, SizeIs(5));
  EXPECT_EQ(config.sinks[0].name, "pyroscope");
  EXPECT_EQ(config.sinks[1].name, "pyroscope-2");
  EXPECT_EQ(config.sinks[1].url, "http://q:4040");
  EXPECT_EQ(config.sinks[2].url, "parca:7070");
  EXPECT_TRUE(config.sinks[2].insecure);
  EXPECT_EQ(config.sinks[3].type, SinkType::kOtlp);
  EXPECT_EQ(config.sinks[4].directory, std::filesystem::current_path() / "profiles");
}

TEST(MakeAgentConfig, NamesTheOptionThatIsWrong) {
  AgentOptions options;
  options.config_file = "/dev/null";
  options.window = "soon";
  options.frequency = "-1";
  options.labels = {"a", "b=1", "b=2", "pid=3"};
  options.comms = {""};
  options.pyroscope_urls = {"nowhere"};
  EXPECT_THAT(ExamineAgentConfig(options, Variable).errors,
              testing::UnorderedElementsAre(
                  StartsWith("--window: found 'soon', expected a duration"),
                  StartsWith("--frequency: found '-1', expected a whole number"),
                  StartsWith("--label: label 'a' has no '='"),
                  StartsWith("--label: label 'b' is given twice"),
                  StartsWith("--label: label name 'pid' is reserved"),
                  StartsWith("--comm: found '', expected a text that is not empty"),
                  StartsWith("--pyroscope: found 'nowhere', expected a URL")));
}

TEST(MakeAgentConfig, ComplainsAboutAFileThatCannotBeRead) {
  AgentOptions options;
  options.config_file = "/nonexistent/pyrometer.yaml";
  const Result<AgentConfig> config = MakeAgentConfig(options, Variable);
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(config.error().message(), HasSubstr("/nonexistent/pyrometer.yaml"));
  EXPECT_FALSE(LoadAgentConfig("/", Variable).has_value());
  EXPECT_FALSE(LoadAgentConfig("/dev/zero", Variable).has_value());
}

}  // namespace
}  // namespace pyrometer
