// SPDX-License-Identifier: Apache-2.0
// What is said about configurations with mistakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/agent_options.h"
#include "tests/unit/config/parsed_config.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

void ExpectErrors(const std::vector<Wrong>& all) {
  for (const auto& [text, error] : all) EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
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
  ExpectErrors(
      {{"frequency: 0", "expected a whole number from 1 to 10000"},
       {"frequency: 10001", "expected a whole number from 1 to 10000"},
       {"frequency: 99.5", "expected a whole number"},
       {"frequency: 0x10", "expected a whole number"},
       {"window: 999ms", "from 1s to 10m"},
       {"window: 10m1s", "from 1s to 10m"},
       {"kernel_stacks: yes", "expected true or false"},
       {"sandbox: false", "expected on or off"},
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
       {"kubernetes: {mode: nodes}",
        "kubernetes.mode: found 'nodes', expected auto, cri, kubelet, api, docker or off"},
       {"kubernetes: {mode: api, api: {url: 'https://x'}}", "is needed with mode api"},
       {"kubernetes: {mode: api, node_name: n}", "needs a url outside of a cluster"},
       {"kubernetes: {api: {url: 'ftp://x'}}", "kubernetes.api.url: "},
       {"kubernetes: {docker_socket: run/x.sock}", "kubernetes.docker_socket: "},
       {"kubernetes: {kubelet: {url: 'ftp://x'}}", "kubernetes.kubelet.url: "},
       {"kubernetes: {kubelet: {token_file: x}}", "kubernetes.kubelet.token_file: "},
       {"kubernetes: {kubelet: {insecure_skip_verify: maybe}}",
        "kubernetes.kubelet.insecure_skip_verify: "},
       {"kubernetes: {kubelet: {verify: no}}", "kubernetes.kubelet.verify: "},
       {"kubernetes: {cri_socket: run/x.sock}", "an absolute path"},
       {"kubernetes: {node_name: \"a\\nb\"}", "kubernetes.node_name: "},
       {"kubernetes: {node: x}", "kubernetes.node: "},
       {"kubernetes: {pod_labels: [team, pod]}", "there is already a label 'pod'"},
       {"kubernetes: {pod_labels: [a.b, a/b]}", "there is already a label 'a_b'"},
       {"kubernetes: {pod_labels: [2nd]}", "'2nd' can be no label of profiles"},
       {"kubernetes: {pod_labels: ['--x']}", "'--x' can be no label of profiles"},
       {"kubernetes: {pod_labels: [pid]}", "'pid' can be no label of profiles"},
       {"sample_labels: [pid, cpu]", "sample_labels[1]: found 'cpu', expected comm, pid or thread"},
       {"sample_labels: pid", "sample_labels: found 'pid', expected a list"},
       {"otel_service_name: maybe", "otel_service_name: found 'maybe'"},
       {"spool: {directory: spool}", "an absolute path"},
       {"spool: {max_size: 10k}", "at least 1MiB, like 512MiB or 1GiB; or 0: no spool"},
       {"spool: {max_age: 0s}", "expected a duration"},
       {"server: {listen: 4041}", "an address and port"},
       {"server: {listen: 'localhost:70000'}", "an address and port"},
       {"server: {listen: ':4041'}", "an address and port"},
       {"server: {tls: {cert_file: /c}}", "server.tls: needs both cert_file and key_file"},
       {"server: {tls: {key_file: /k}}", "server.tls: needs both cert_file and key_file"}});
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
  ExpectErrors(
      {{"frequncy: 99", "p.yaml:1:1: frequncy: unknown key; did you mean 'frequency'?"},
       {"spool: {max-size: 1GiB}", "spool.max-size: unknown key; did you mean 'max_size'?"},
       {"sinks: [{type: parca, adress: 'p:1', address: 'p:1'}]", "did you mean 'address'?"},
       {"store: {directory: /x}", "store: unknown key; known here: frequency, window"},
       {"<<: {}", "<<: unknown key"}});
}

TEST(ParseAgentConfig, RefusesKeysGivenTwice) {
  EXPECT_THAT(ErrorOf("window: 10s\nfrequency: 9\nwindow: 20s"),
              HasSubstr("p.yaml:3:1: key 'window' is given twice, first at p.yaml:1:1"));
  EXPECT_THAT(ErrorOf("spool: {max_size: 1GiB, max_size: 2GiB}"), HasSubstr("is given twice"));
}

}  // namespace
}  // namespace pyrometer
