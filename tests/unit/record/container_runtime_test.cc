// SPDX-License-Identifier: Apache-2.0
#include "record/container_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Environment Having(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

// Why no runtime answers with these variables.
std::string WhyNot(const std::map<std::string, std::string>& variables) {
  const auto source = LocalContainerRuntime(Having(variables));
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

TEST(LocalContainerRuntime, SaysWhereAllRuntimesWereLookedFor) {
  EXPECT_THAT(WhyNot({{"CONTAINER_RUNTIME_ENDPOINT", "/no/cri"}, {"DOCKER_HOST", "/no/docker"}}),
              AllOf(HasSubstr("/no/cri"), HasSubstr("/no/docker")));
}

TEST(IgnoredEndpoints, NamesVariablesThatCannotBeUsed) {
  EXPECT_EQ(IgnoredEndpoints(Having({})), "");
  EXPECT_EQ(IgnoredEndpoints(Having(
                {{"DOCKER_HOST", ""}, {"CONTAINER_RUNTIME_ENDPOINT", "unix:///run/x.sock"}})),
            "");
  for (const char* value : {"tcp://build-host:2375", "ssh://root@host", "run/docker.sock"}) {
    EXPECT_EQ(IgnoredEndpoints(Having({{"DOCKER_HOST", value}})),
              "DOCKER_HOST is ignored: only a socket of this machine can be asked, unix://PATH");
  }
  EXPECT_THAT(IgnoredEndpoints(Having(
                  {{"DOCKER_HOST", "tcp://x"}, {"CONTAINER_RUNTIME_ENDPOINT", "npipe://x"}})),
              HasSubstr("CONTAINER_RUNTIME_ENDPOINT, DOCKER_HOST are ignored: "));
}

}  // namespace
}  // namespace pyrometer
