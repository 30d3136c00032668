// SPDX-License-Identifier: Apache-2.0
#include "profile/folded.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

TEST(EncodeFolded, WritesRootFirstBelowTheProcess) {
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("work")}, 3);
  EXPECT_EQ(EncodeFolded(made.profile()), "app;main;work 3\n");
}

TEST(EncodeFolded, MarksKernelFramesOnly) {
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("jitted", CodeOrigin::kJit),
            MakeLocation("sys_read", CodeOrigin::kKernel)},
           1);
  EXPECT_EQ(EncodeFolded(made.profile()), "app;main;jitted;sys_read_[k] 1\n");
}

TEST(EncodeFolded, StartsCutStacksBelowAMarker) {
  MadeProfile made;
  const LocationRef leaf = MakeLocation("leaf");
  made.Add({leaf}, 1).Add({leaf}, 2, {.end = StackEnd::kTruncated});
  made.Add({leaf}, 3, {.end = StackEnd::kNoUnwindInfo});
  EXPECT_EQ(EncodeFolded(made.profile()),
            "app;[truncated];leaf 2\n"
            "app;[unwind stopped: no unwind information];leaf 3\n"
            "app;leaf 1\n");
}

TEST(EncodeFolded, WritesInlinedFunctionsAsFramesOfTheirOwn) {
  Location location;
  location.lines = {{.function = "inner", .system_name = {}, .file = {}},
                    {.function = "outer", .system_name = {}, .file = {}}};
  MadeProfile made;
  made.Add({MakeLocation("main"), std::make_shared<const Location>(location)}, 1);
  EXPECT_EQ(EncodeFolded(made.profile()), "app;main;outer;inner 1\n");
}

TEST(EncodeFolded, LetsNoNameBreakALineOrAFrame) {
  MadeProfile made;
  made.Add({MakeLocation("a;b"), MakeLocation("c\nd 9")}, 1, {.comm = "x;y\n"});
  EXPECT_EQ(EncodeFolded(made.profile()),
            "x:y\xEF\xBF\xBD;a:b;c\xEF\xBF\xBD"
            "d 9 1\n");
}

TEST(EncodeFolded, MergesLinesThatReadTheSame) {
  const auto library = MakeObject("/lib/libx.so");
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("f")}, 1, {.pid = 1});
  made.Add({MakeLocation("main"), MakeLocation("f", CodeOrigin::kUser, library)}, 2, {.pid = 2});
  made.Add({MakeLocation("main"), MakeLocation("g")}, 4);
  made.Add({MakeLocation("main"), MakeLocation("f")}, 8, {.thread = "worker"});
  EXPECT_EQ(EncodeFolded(made.profile()), "app;main;f 11\napp;main;g 4\n");
}

TEST(EncodeFolded, KeepsASampleWithoutFrames) {
  MadeProfile made;
  made.Add({}, 2, {.end = StackEnd::kUnreadable}).Add({}, 3, {.comm = ""});
  EXPECT_EQ(EncodeFolded(made.profile()),
            "[unknown] 3\napp;[unwind stopped: stack unreadable] 2\n");
}

TEST(EncodeFolded, NamesFramesThatHaveNone) {
  MadeProfile made;
  made.Add({MakeLocation(""), std::make_shared<const Location>()}, 1);
  EXPECT_EQ(EncodeFolded(made.profile()), "app;[unknown];[unknown] 1\n");
}

TEST(EncodeFolded, OfNothingIsEmpty) {
  EXPECT_EQ(EncodeFolded(MadeProfile().profile()), "");
}

}  // namespace
}  // namespace pyrometer
