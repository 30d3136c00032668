// SPDX-License-Identifier: Apache-2.0
#include "metadata/late_source.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

// Tells of a change as soon as somebody wants to know.
class Changing final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>{{.id = "a"}};
  }
  void Cancel() override {}
  void TellChanges(const std::function<void()>& changed) override { changed(); }
};

TEST(LateSource, IsMadeWhenItIsAskedFirst) {
  int made = 0;
  int changes = 0;
  LateSource source([&] {
    ++made;
    return std::make_unique<Changing>();
  });
  source.TellChanges([&] { ++changes; });
  EXPECT_EQ(made, 0);
  EXPECT_EQ(source.List()->at(0).id, "a");
  EXPECT_TRUE(source.List());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(changes, 1);
}

TEST(LateSource, IsNotMadeAfterCancel) {
  LateSource source([] { return std::make_unique<Changing>(); });
  source.Cancel();
  EXPECT_FALSE(source.List());
}

}  // namespace
}  // namespace pyrometer
