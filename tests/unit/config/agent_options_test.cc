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

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;
using namespace std::chrono_literals;

std::optional<std::string> Variable(const std::string& name) {
  static const std::map<std::string, std::string> kVariables = {{"URL", "http://pyroscope:4040"},
                                                                {"PASSWORD", "hunter2"},
                                                                {"FREQUENCY", "49"},
                                                                {"WORDS", "a: [b"},
                                                                {"EMPTY", ""},
                                                                {"LINES", "a\nb"},
                                                                {"DOLLAR", "${URL}"}};
  const auto found = kVariables.find(name);
  if (found == kVariables.end()) return std::nullopt;
  return found->second;
}

AgentConfig Parse(std::string_view text) {
  Result<AgentConfig> config = ParseAgentConfig(text, "p.yaml", Variable);
  if (config) return *std::move(config);
  ADD_FAILURE() << text << "\n" << config.error().message();
  return {};
}

SinkConfig ParseSink(std::string_view keys) {
  const AgentConfig config = Parse(fmt::format("sinks: [{{ {} }}]", keys));
  if (config.sinks.size() == 1) return config.sinks[0];
  ADD_FAILURE() << keys << " made " << config.sinks.size() << " sinks";
  return {};
}

std::string ErrorOf(std::string_view text) {
  const Result<AgentConfig> config = ParseAgentConfig(text, "p.yaml", Variable);
  if (config) return "no error";
  EXPECT_EQ(config.error().code(), ErrorCode::kInvalid);
  return config.error().message();
}

struct Wrong {
  const char* text;
  const char* error;
};

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
labels: { cluster: blue, version: 1.10 }
filter: { comms: [nginx, a-name-beyond-the-kernels], cgroups: [/a, /a], exclude_cgroups: [b] }
limits: { cpu: 2.5%, memory: 1GiB }
)");
  EXPECT_EQ(config.frequency.value, 499U);
  EXPECT_EQ(config.window, 90s);
  EXPECT_FALSE(config.kernel_stacks);
  EXPECT_THAT(config.labels, ElementsAre(Pair("cluster", "blue"), Pair("version", "1.10")));
  EXPECT_THAT(config.filter.comms, ElementsAre("nginx", "a-name-beyond-t"));
  EXPECT_THAT(config.filter.cgroups, ElementsAre("/a"));
  EXPECT_THAT(config.filter.exclude_cgroups, ElementsAre("b"));
  EXPECT_DOUBLE_EQ(config.limits.cpu, 0.025);
  EXPECT_EQ(config.limits.memory, uint64_t{1} << 30);
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

TEST(ParseAgentConfig, SaysWhereAndWhatIsWrong) {
  for (const auto& [text, error] : std::vector<Wrong>{
           {"window: 5",
            "p.yaml:1:9: window: found '5', expected a duration from 1s to 10m, like "
            "10s"},
           {"\nfrequency: often",
            "p.yaml:2:12: frequency: found 'often', expected a whole number from 1 to 10000"},
           {"limits: {cpu: 3}", "p.yaml:1:15: limits.cpu: found '3', expected a share"},
           {"labels: [a]", "p.yaml:1:9: labels: found a list, expected keys with values"},
           {"filter:\n  comms: nginx", "p.yaml:2:10: filter.comms: found 'nginx', expected a list"},
           {"filter: {comms: [a, []]}",
            "p.yaml:1:21: filter.comms[1]: found a list, expected a text"},
           {"window:\nfrequency: 9", "p.yaml:1:1: window: found nothing, expected a duration"},
           {"sinks: [{type: file, directory: /a}, {type: file, directory: /b}]",
            "sinks[1].name: two sinks have the name 'file'"},
           {"- a", "p.yaml:1:1: expected keys with values"},
           {"just words", "p.yaml:1:1: expected keys with values"},
           {"a: b: c", "p.yaml:1:5: illegal map value"},
           {"window: '1s", "p.yaml:1:"},
           {"window: 1s\n---\nwindow: 2s", "a second document begins"}}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
    EXPECT_THAT(ErrorOf(text), StartsWith("p.yaml:")) << text;
  }
}

TEST(ParseAgentConfig, RefusesImpossibleValues) {
  for (const auto& [text, error] : std::vector<Wrong>{
           {"frequency: 0", "expected a whole number from 1 to 10000"},
           {"frequency: 10001", "expected a whole number from 1 to 10000"},
           {"frequency: 99.5", "expected a whole number"},
           {"frequency: 0x10", "expected a whole number"},
           {"window: 999ms", "from 1s to 10m"},
           {"window: 10m1s", "from 1s to 10m"},
           {"kernel_stacks: yes", "expected true or false"},
           {"labels: {pid: '1'}", "label name 'pid' is reserved"},
           {"labels: {__name__: x}", "begin with '__' are reserved"},
           {"labels: {a-b: x}", "may only have letters, digits and '_'"},
           {"labels: {a: ''}", "label 'a' has no value"},
           {"labels: {a: \"x\\ny\"}", "control characters"},
           {"filter: {comms: ['']}", "not empty"},
           {"limits: {cpu: 0%}", "more than 0%"},
           {"limits: {cpu: 101%}", "at most 100%"},
           {"limits: {cpu: nan%}", "at most 100%"},
           {"limits: {memory: 1MiB}", "at least 64MiB"},
           {"spool: {directory: spool}", "an absolute path"},
           {"spool: {max_size: 10k}", "at least 1MiB, like 512MiB or 1GiB; or 0: no spool"},
           {"spool: {max_age: 0s}", "expected a duration"},
           {"server: {listen: 4041}", "an address and port"},
           {"server: {listen: 'localhost:70000'}", "an address and port"},
           {"server: {listen: ':4041'}", "an address and port"},
           {"server: {tls: {cert_file: /c}}", "server.tls: needs both cert_file and key_file"},
           {"server: {tls: {key_file: /k}}", "server.tls: needs both cert_file and key_file"}}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
  }
}

TEST(ParseAgentConfig, RefusesImpossibleSinks) {
  for (const auto& [keys, error] : std::vector<Wrong>{
           {"url: 'http://p'",
            "sinks[0].type: is missing; expected pyroscope, parca, otlp or file"},
           {"type: kafka", "found 'kafka', expected pyroscope, parca, otlp or file"},
           {"type: file", "sinks[0].directory: is missing; expected an absolute path"},
           {"type: file, directory: ''", "an absolute path"},
           {"type: file, directory: /a, max_size: 0", "at least 1MiB"},
           {"type: file, directory: /a, timeout: 1s", "unknown key; known here: type, name"},
           {"type: pyroscope", "sinks[0].url: is missing"},
           {"type: pyroscope, url: 'pyroscope:4040'", "expected a URL like http://"},
           {"type: pyroscope, url: 'ftp://p'", "expected a URL like http://"},
           {"type: pyroscope, url: 'http://'", "expected a URL like http://"},
           {"type: pyroscope, url: 'http://p:99999'", "expected a URL like http://"},
           {"type: pyroscope, url: 'http://p/?a=b'", "expected a URL like http://"},
           {"type: pyroscope, url: 'http://p', api: pull", "expected push or ingest"},
           {"type: pyroscope, url: 'http://p', name: ../x", "expected a name"},
           {"type: pyroscope, url: 'http://p', name: ..", "expected a name"},
           {"type: pyroscope, url: 'http://p', concurrency: 0", "from 1 to 256"},
           {"type: pyroscope, url: 'http://p', timeout: 1ms", "from 100ms to 10m"},
           {"type: pyroscope, url: 'http://p', retry: {min_backoff: 10m}",
            "max_backoff is shorter than min_backoff"},
           {"type: pyroscope, url: 'http://p', tls: {ca_file: /ca}", "tls: has no effect"},
           {"type: pyroscope, url: 'https://p', tls: {cert_file: /c}", "needs both cert_file"},
           {"type: pyroscope, url: 'https://p', tls: {key_file: /k}", "needs both cert_file"},
           {"type: pyroscope, url: 'http://p', tenant: t, headers: {x-scope-orgid: u}",
            "tenant: is also given by the header X-Scope-OrgID"},
           {"type: pyroscope, url: 'http://p', insecure: true", "insecure: unknown key"},
           {"type: parca, address: 'p'", "expected a host and port"},
           {"type: parca, address: 'http://p:7070/x'", "expected a host and port"},
           {"type: parca, address: 'http://p:7070', insecure: false", "contradicts http://"},
           {"type: parca, address: 'https://p:7070', insecure: true", "contradicts https://"},
           {"type: parca, address: 'p:7070', insecure: true, tls: {ca_file: /c}", "has no effect"},
           {"type: otlp, endpoint: 'c:4318'", "expected a URL like http://"},
           {"type: otlp, endpoint: 'https://c:4318', insecure: true", "contradicts https://"},
           {"type: otlp, endpoint: 'http://c:4318', protocol: json", "expected http or grpc"}}) {
    EXPECT_THAT(ErrorOf(fmt::format("sinks: [{{{}}}]", keys)), HasSubstr(error)) << keys;
  }
}

TEST(ParseAgentConfig, RefusesTwoSinksOfOneDirectory) {
  EXPECT_THAT(ErrorOf("sinks: [{type: file, directory: /a/b}, "
                      "{type: file, name: f, directory: /a//b/}]"),
              HasSubstr("two sinks have the same directory"));
}

TEST(ParseAgentConfig, RefusesHeadersThatCannotBeSent) {
  for (const auto& [header, error] :
       std::vector<Wrong>{{"Content-Type: x", "is set by the sink itself"},
                          {"grpc-timeout: 1S", "is set by the sink itself"},
                          {"'a b': x", "is no header name"},
                          {"a-bin: x", "binary"},
                          {"a: \"\\u00e4\"", "printable ASCII"},
                          {"a: \"x\\r\\ny: z\"", "control characters"},
                          {"a: x, A: y", "header 'A' is given twice"}}) {
    EXPECT_THAT(ErrorOf(fmt::format(
                    "sinks: [{{type: pyroscope, url: 'http://p', headers: {{{}}}}}]", header)),
                HasSubstr(error))
        << header;
  }
}

TEST(ParseAgentConfig, TakesSecretsOnlyFromOutside) {
  for (const char* keys : {"basic_auth: {username: u, password: hunter2}",
                           "headers: {Authorization: hunter2}", "headers: {authorization: hunter2}",
                           "headers: {X-Api-Key: hunter2}", "headers: {X-Vault-Token: hunter2}",
                           "headers: {x_client_secret: hunter2}", "headers: {Cookie: hunter2}"}) {
    const std::string error =
        ErrorOf(fmt::format("sinks: [{{type: pyroscope, url: 'http://p', {}}}]", keys));
    EXPECT_THAT(error, HasSubstr("a secret may not be written here")) << keys;
    EXPECT_THAT(error, HasSubstr("'${NAME}'")) << keys;
    EXPECT_THAT(error, Not(HasSubstr("hunter2"))) << keys;
  }
}

TEST(ParseAgentConfig, RepeatsNoSecretInItsErrors) {
  for (const char* text :
       {"window: ${PASSWORD}", "frequency: 9${PASSWORD}", "labels: {'a': \"${PASSWORD}${LINES}\"}",
        "sinks: [{type: pyroscope, url: 'http://u:hunter2@host'}]",
        "sinks: [{type: parca, address: 'http://u:hunter2@host:1'}]"}) {
    EXPECT_THAT(ErrorOf(text), StartsWith("p.yaml:1:")) << text;
    EXPECT_THAT(ErrorOf(text), Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(ParseAgentConfig, TakesOneWayToAuthenticate) {
  for (const auto& [keys, error] : std::vector<Wrong>{
           {"basic_auth: {username: u, password_file: /p}, bearer_token_file: /t", "only one of"},
           {"bearer_token_file: /t, headers: {Authorization: '${PASSWORD}'}", "only one of"},
           {"basic_auth: {username: u, password_file: /p, password: '${PASSWORD}'}", "has both"},
           {"basic_auth: {username: u}", "needs password_file or password"},
           {"basic_auth: {password_file: /p}", "needs a username"},
           {"basic_auth: {username: 'a:b', password_file: /p}", "may not have a colon"}}) {
    EXPECT_THAT(ErrorOf(fmt::format("sinks: [{{type: parca, address: 'p:1', {}}}]", keys)),
                HasSubstr(error))
        << keys;
  }
}

TEST(ParseAgentConfig, NamesTheVariableThatIsNotSet) {
  EXPECT_THAT(ErrorOf("window: ${WINDOW}"),
              HasSubstr("window: the environment variable WINDOW is not set"));
  for (const char* value : {"${", "${}", "${A-B}", "${URL", "${URL:-x}"}) {
    EXPECT_THAT(ErrorOf(fmt::format("labels: {{a: '{}'}}", value)),
                HasSubstr("names no environment variable"))
        << value;
  }
}

TEST(ParseAgentConfig, ProposesTheKeyThatWasMeant) {
  for (const auto& [text, error] : std::vector<Wrong>{
           {"frequncy: 99", "p.yaml:1:1: frequncy: unknown key; did you mean 'frequency'?"},
           {"spool: {max-size: 1GiB}", "spool.max-size: unknown key; did you mean 'max_size'?"},
           {"sinks: [{type: parca, adress: 'p:1', address: 'p:1'}]", "did you mean 'address'?"},
           {"store: {directory: /x}", "store: unknown key; known here: frequency, window"},
           {"relabel_configs: []", "relabel_configs: unknown key"},
           {"<<: {}", "<<: unknown key"}}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
  }
}

TEST(ParseAgentConfig, RefusesKeysGivenTwice) {
  EXPECT_THAT(ErrorOf("window: 10s\nfrequency: 9\nwindow: 20s"),
              HasSubstr("p.yaml:3:1: key 'window' is given twice, first at p.yaml:1:1"));
  EXPECT_THAT(ErrorOf("spool: {max_size: 1GiB, max_size: 2GiB}"), HasSubstr("is given twice"));
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
