// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/file.h"
#include "indexer/in_process_indexer.h"

namespace pyrometer {
namespace {

constexpr ObjectId kSelf{7};
constexpr ObjectId kGone{8};
constexpr ProcessKey kProcess{Pid(100), StartTime(5)};

ResolvedWindow WindowOfTwoObjects() {
  ObjectInfo self;
  self.path = "/bin/self";
  ObjectInfo gone;
  gone.path = "/bin/gone";
  ResolvedWindow window;
  window.objects[kSelf] = {
      std::make_shared<ObjectInfo>(std::move(self)),
      std::make_shared<const UniqueFd>(*Open("/proc/self/exe", O_RDONLY)),
  };
  window.objects[kGone] = {std::make_shared<ObjectInfo>(std::move(gone)), nullptr};
  return window;
}

TEST(WindowSources, AnswerFromTheWindowAlone) {
  InProcessIndexer indexer;
  WindowSources sources(indexer);
  ResolvedWindow window = WindowOfTwoObjects();
  sources.Use(window);
  EXPECT_EQ(sources.Describe(kSelf)->path, "/bin/self");
  EXPECT_TRUE(sources.Symbols(kSelf).has_value());
  EXPECT_EQ(sources.Describe(kGone)->path, "/bin/gone");
  EXPECT_EQ(sources.Symbols(kGone).error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(sources.Describe(ObjectId(9)).has_value());
  EXPECT_EQ(sources.Open(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST(WindowSources, KnowNothingBetweenWindows) {
  InProcessIndexer indexer;
  WindowSources sources(indexer);
  ResolvedWindow window = WindowOfTwoObjects();
  sources.Use(window);
  sources.Clear();
  EXPECT_FALSE(sources.Describe(kSelf).has_value());
  EXPECT_EQ(sources.Symbols(kSelf).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(sources.Open(kProcess).error().code(), ErrorCode::kNotFound);
}

TEST(WindowSources, ReadNothingOnceItIsTooLate) {
  InProcessIndexer indexer;
  WindowSources sources(indexer);
  ResolvedWindow window = WindowOfTwoObjects();
  sources.Use(window);
  sources.GiveUpAt(std::chrono::steady_clock::now());
  EXPECT_EQ(sources.Describe(kSelf)->path, "/bin/self");
  EXPECT_EQ(sources.Symbols(kSelf).error().code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace pyrometer
