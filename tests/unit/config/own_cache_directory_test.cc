// SPDX-License-Identifier: Apache-2.0
#include "config/own_cache_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

std::string DirectoryFor(const std::map<std::string, std::string>& variables) {
  return OwnCacheDirectory([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(OwnCacheDirectory, IsWhereUsersHaveTheirs) {
  const TemporaryTree tree;
  EXPECT_EQ(DirectoryFor({{"HOME", tree.Path()}}), tree.Path() + "/.cache/pyrometer");
  EXPECT_EQ(DirectoryFor({{"HOME", "/"}, {"XDG_CACHE_HOME", tree.Path()}}),
            tree.Path() + "/pyrometer");
}

TEST(OwnCacheDirectory, IsNoneWhereTheUserHasNoPlace) {
  EXPECT_EQ(DirectoryFor({}), "");
  EXPECT_EQ(DirectoryFor({{"HOME", "/nonexistent"}, {"XDG_CACHE_HOME", "relative"}}), "");
}

TEST(OwnCacheDirectory, IsNotInAnotherUsersHome) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const TemporaryTree tree;
  ASSERT_EQ(::chown(tree.Path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(DirectoryFor({{"HOME", tree.Path()}}), "");
}

}  // namespace
}  // namespace pyrometer
