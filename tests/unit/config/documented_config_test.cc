// SPDX-License-Identifier: Apache-2.0
// packaging/pyrometer.yaml, the documentation of every key, against the reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <regex>
#include <set>
#include <string>

#include "base/file.h"
#include "config/agent_config_reader.h"
#include "config/agent_options.h"
#include "config/yaml_document.h"
#include "tests/shared/test_paths.h"

namespace pyrometer {
namespace {

using testing::IsEmpty;

constexpr const char* kPath = "packaging/pyrometer.yaml";

std::string Documented() {
  return *ReadFile(SourcePath(kPath));
}

// With every key set: comments have a blank after the '#', keys do not.
std::string Uncommented() {
  static const std::regex kKey("(^|\n)( *)#(?=[^ \n#])");
  return std::regex_replace(Documented(), kKey, "$1$2");
}

std::optional<std::string> AnyVariable(const std::string& name) {
  return "value-of-" + name;
}

// The paths of all keys of a document, as ConfigReading has them.
void AddKeys(const ConfigNode& node, const std::string& path, std::set<std::string>& keys) {
  for (const ConfigNode& child : node.children) {
    if (node.kind == ConfigNode::Kind::kList) {
      AddKeys(child, path + "[]", keys);
      continue;
    }
    const std::string key = path.empty() ? child.key : path + "." + child.key;
    keys.insert(key);
    // These hold names that are the user's.
    if (child.key != "labels" && child.key != "headers") AddKeys(child, key, keys);
  }
}

TEST(DocumentedConfig, LoadsAsItIsAndChangesNothing) {
  const Result<AgentConfig> config = ParseAgentConfig(Documented(), kPath, AnyVariable);
  ASSERT_TRUE(config.has_value()) << config.error().message();
  EXPECT_EQ(config->sinks.size(), 1U);
  EXPECT_THAT(config->labels, IsEmpty());
}

TEST(DocumentedConfig, LoadsWithEveryKeySet) {
  const Result<AgentConfig> config = ParseAgentConfig(Uncommented(), kPath, AnyVariable);
  ASSERT_TRUE(config.has_value()) << config.error().message();
  EXPECT_EQ(config->sinks.size(), 4U);
}

TEST(DocumentedConfig, HasEveryKeyThatExists) {
  const YamlDocument document = ReadYaml(Uncommented(), kPath);
  ASSERT_THAT(document.errors, IsEmpty());
  const Environment environment = AnyVariable;
  ConfigReading reading{.environment = environment};
  static_cast<void>(ReadAgentConfig(document.root, reading));
  std::set<std::string> documented;
  AddKeys(document.root, "", documented);
  EXPECT_EQ(documented, reading.known_keys);
}

TEST(DocumentedConfig, ShowsTheDefaults) {
  const AgentConfig set = *ParseAgentConfig(Uncommented(), kPath, AnyVariable);
  const AgentConfig by_default = *ParseAgentConfig("", kPath, AnyVariable);
  EXPECT_EQ(set.frequency.value, by_default.frequency.value);
  EXPECT_EQ(set.window, by_default.window);
  EXPECT_EQ(set.kernel_stacks, by_default.kernel_stacks);
  EXPECT_EQ(set.inlines, by_default.inlines);
  EXPECT_EQ(set.dwarf, by_default.dwarf);
  EXPECT_EQ(set.demangling, by_default.demangling);
  EXPECT_EQ(set.sandbox, by_default.sandbox);
  EXPECT_EQ(set.server.listen, by_default.server.listen);
  EXPECT_EQ(set.server.bearer_token_file, by_default.server.bearer_token_file);
  EXPECT_EQ(set.spool.directory, by_default.spool.directory);
  EXPECT_EQ(set.spool.max_size, by_default.spool.max_size);
  EXPECT_EQ(set.spool.max_age, by_default.spool.max_age);
  EXPECT_EQ(set.limits.cpu, by_default.limits.cpu);
  EXPECT_EQ(set.limits.memory, by_default.limits.memory);
  EXPECT_EQ(set.sinks[0].name, by_default.sinks[0].name);
  EXPECT_EQ(set.sinks[0].directory, by_default.sinks[0].directory);
  EXPECT_EQ(set.sinks[0].max_size, by_default.sinks[0].max_size);
  EXPECT_EQ(set.sinks[0].max_age, by_default.sinks[0].max_age);
  const SinkConfig unset;
  EXPECT_EQ(set.sinks[1].timeout, unset.timeout);
  EXPECT_EQ(set.sinks[1].concurrency, unset.concurrency);
  EXPECT_EQ(set.sinks[1].ingest, unset.ingest);
  EXPECT_EQ(set.sinks[1].retry.min_backoff, unset.retry.min_backoff);
  EXPECT_EQ(set.sinks[1].retry.max_backoff, unset.retry.max_backoff);
  EXPECT_EQ(set.sinks[1].retry.at_least_once, unset.retry.at_least_once);
  EXPECT_EQ(set.sinks[2].insecure, unset.insecure);
}

// A reader that survives these may still be wrong, but neither crashes nor hangs on a damaged file.
TEST(DocumentedConfig, SurvivesBeingCutAnywhere) {
  const std::string whole = Uncommented();
  for (size_t size = 0; size < whole.size(); size += 13) {
    const Result<AgentConfig> config =
        ParseAgentConfig(whole.substr(0, size), "cut.yaml", AnyVariable);
    if (!config) {
      EXPECT_EQ(config.error().code(), ErrorCode::kInvalid);
    }
  }
}

TEST(DocumentedConfig, SurvivesChangedBytes) {
  const std::string whole = Uncommented();
  std::mt19937 random(20'261'122);  // fixed: a failure can be repeated
  constexpr std::string_view kOddBytes = "{}[]:,-&*!|>'\"%@`#?~ \t\n\r\\\0\x7f\x80\xff\xfe$";
  for (int round = 0; round < 600; ++round) {
    std::string text = whole;
    for (int change = 0; change < 1 + round % 4; ++change) {
      const bool odd = random() % 2 == 0;
      const char byte =
          odd ? kOddBytes[random() % kOddBytes.size()] : static_cast<char>(random() % 256);
      text[random() % text.size()] = byte;
    }
    const Result<AgentConfig> config = ParseAgentConfig(text, "damaged.yaml", AnyVariable);
    if (!config) {
      EXPECT_EQ(config.error().code(), ErrorCode::kInvalid);
    }
  }
}

}  // namespace
}  // namespace pyrometer
