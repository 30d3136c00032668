// SPDX-License-Identifier: Apache-2.0
#include "record/container_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

// Why no runtime answers with these variables, without the words about others.
std::string WhyNot(const std::map<std::string, std::string>& variables) {
  const Clock clock;
  const auto source = LocalContainerRuntime(
      [&](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      clock);
  const Result<std::vector<ContainerMetadata>> listed = source->List();
  return listed ? "it answers" : listed.error().message();
}

TEST(LocalContainerRuntime, IsWhereTheEnvironmentSays) {
  TemporaryTree tree;
  tree.File("socket", "this is none");
  EXPECT_THAT(WhyNot({{"CONTAINER_RUNTIME_ENDPOINT", "unix://" + tree.Path("socket")},
                      {"DOCKER_HOST", tree.Path("neither")}}),
              HasSubstr(tree.Path("socket")));
  EXPECT_THAT(WhyNot({{"CONTAINER_RUNTIME_ENDPOINT", tree.Path("none")},
                      {"DOCKER_HOST", tree.Path("neither")}}),
              HasSubstr(tree.Path("none")));
  EXPECT_THAT(WhyNot({{"CONTAINER_RUNTIME_ENDPOINT", tree.Path("none")},
                      {"DOCKER_HOST", "unix://" + tree.Path("socket")}}),
              HasSubstr(tree.Path("socket")));
}

}  // namespace
}  // namespace pyrometer
