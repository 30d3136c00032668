// SPDX-License-Identifier: Apache-2.0
#include "config/container_id.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace pyrometer {
namespace {

TEST(ParseContainerId, AcceptsWhatToolsPrint) {
  const std::string full(64, 'a');
  const std::string ecs = std::string(32, '0') + "-1234567890";
  const std::pair<std::string, std::string> cases[] = {
      {full, full},
      {"0123456789ab", "0123456789ab"},
      {"containerd://" + full, full},
      {ecs, ecs},
  };
  for (const auto& [text, id] : cases) {
    const Result<std::string> parsed = ParseContainerId(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, id);
  }
}

TEST(ParseContainerId, RefusesNamesAndShortPrefixes) {
  for (const std::string& text :
       {std::string(), std::string("my-nginx"), std::string("0123456789a"),
        std::string("0123456789AB"), std::string(65, 'a'), std::string(32, '0') + "-",
        std::string(32, '0') + "-1x", std::string("../../0123456789ab")}) {
    const Result<std::string> parsed = ParseContainerId(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(parsed.error().message().find("or its name"), std::string::npos);
  }
}

TEST(IsContainerName, TakesWhatKubernetesAndDockerDo) {
  for (const char* name : {"web", "web-0", "My_nginx.1", "0"})
    EXPECT_TRUE(IsContainerName(name)) << name;
  EXPECT_TRUE(IsContainerName(std::string(253, 'a')));
  EXPECT_FALSE(IsContainerName(std::string(254, 'a')));
  for (const char* name : {"", "a b", "a/b", "docker://x", "a\n", "\xc3\xa4"}) {
    EXPECT_FALSE(IsContainerName(name)) << name;
  }
}

}  // namespace
}  // namespace pyrometer
