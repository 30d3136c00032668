// SPDX-License-Identifier: Apache-2.0
#include "profile/frame_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

constexpr FrameNames::Owner kOwner{{Pid(7), StartTime(100)}, ExecId(1)};
const Frame kObjectFrame = Frame::Object(ObjectId(1), ElfAddress(0x1000));
const Frame kUserFrame = Frame::User(Address(0x7f0000001000));
const Frame kKernelFrame = Frame::Kernel(KernelAddress(0xffffffffc0001000));

LocationRef MadeUp(std::string name, std::shared_ptr<const CodeObject> object = nullptr) {
  Location location = *MakeLocation(std::move(name), CodeOrigin::kUser, std::move(object));
  location.quality = NameQuality::kMadeUp;
  return std::make_shared<const Location>(std::move(location));
}

TEST(FrameNames, NumbersFramesInTheOrderOfFirstSight) {
  FrameNames names;
  const LocationRef a = MakeLocation("a");
  const LocationRef b = MakeLocation("b");
  EXPECT_EQ(names.Add(kKernelFrame, kOwner, a), 0);
  EXPECT_EQ(names.Add(kObjectFrame, kOwner, b), 1);
  EXPECT_EQ(names.Add(kKernelFrame, kOwner, a), 0);
  EXPECT_THAT(std::move(names).Finish(), ElementsAre(a, b));
}

TEST(FrameNames, LetARealNameReplaceAMadeUpOneOnly) {
  for (const Frame frame : {kObjectFrame, kUserFrame, kKernelFrame}) {
    FrameNames names;
    const LocationRef real = MakeLocation("real");
    EXPECT_EQ(names.Add(frame, kOwner, MadeUp("x+0x1")), 0);
    EXPECT_EQ(names.Add(frame, kOwner, real), 0);
    EXPECT_EQ(names.Add(frame, kOwner, MadeUp("x+0x2")), 0);
    EXPECT_THAT(std::move(names).Finish(), ElementsAre(real));
  }
}

TEST(FrameNames, LetTheLatestOfEquallyGoodNamesOfAnObjectWin) {
  FrameNames names;
  const LocationRef latest = MakeLocation("with_lines");
  names.Add(kObjectFrame, kOwner, MakeLocation("without_lines"));
  EXPECT_EQ(names.Add(kObjectFrame, kOwner, latest), 0);
  EXPECT_THAT(std::move(names).Finish(), ElementsAre(latest));
}

TEST(FrameNames, AreImprovedWhereTheyAreKnownOnly) {
  constexpr FrameNames::Owner kLater{{Pid(7), StartTime(100)}, ExecId(2)};
  const LocationRef real = MakeLocation("real");
  for (const Frame frame : {kObjectFrame, kUserFrame, kKernelFrame}) {
    FrameNames names;
    names.Improve(frame, kOwner, real);
    EXPECT_EQ(names.Add(frame, kOwner, MadeUp("x+0x1")), 0);
    names.Improve(frame, kOwner, real);
    names.Improve(frame, kOwner, MadeUp("x+0x2"));
    EXPECT_EQ(names.Add(frame, kOwner, MadeUp("x+0x3")), 0);
    EXPECT_THAT(std::move(names).Finish(), ElementsAre(real));
  }
  FrameNames names;
  const LocationRef other = MadeUp("[unknown]");
  names.Add(kUserFrame, kOwner, other);
  names.Improve(kUserFrame, kLater, real);
  EXPECT_THAT(std::move(names).Finish(), ElementsAre(other)) << "another program ran there";
}

TEST(FrameNames, AreImprovedByPlacesInTheSource) {
  Location with_line = *MakeLocation("f");
  with_line.lines.front().file = "f.cc";
  const auto better = std::make_shared<const Location>(with_line);
  const LocationRef plain = MakeLocation("f");
  FrameNames names;
  names.Add(kObjectFrame, kOwner, plain);
  names.Add(kUserFrame, kOwner, plain);
  names.Improve(kObjectFrame, kOwner, better);
  names.Improve(kObjectFrame, kOwner, plain);
  names.Improve(kUserFrame, kOwner, better);
  EXPECT_THAT(std::move(names).Finish(), ElementsAre(better, plain))
      << "what lies at a user address may be other code by now";
}

TEST(FrameNames, KeepCodeApartThatFollowsOtherCodeAtItsAddress) {
  for (const Frame frame : {kUserFrame, kKernelFrame}) {
    FrameNames names;
    const LocationRef first = MakeLocation("first");
    const LocationRef second = MakeLocation("second");
    const LocationRef third = MakeLocation("third");
    EXPECT_EQ(names.Add(frame, kOwner, first), 0);
    EXPECT_EQ(names.Add(frame, kOwner, second), 1);
    EXPECT_EQ(names.Add(frame, kOwner, third), 2);
    EXPECT_EQ(names.Add(frame, kOwner, first), 0);
    EXPECT_EQ(names.Add(frame, kOwner, MakeLocation("second")), 1);
    EXPECT_EQ(names.Add(frame, kOwner, third), 2);
    EXPECT_EQ(std::move(names).Finish().size(), 3);
  }
}

TEST(FrameNames, TakeAMadeUpNameForTheCodeSeenLast) {
  FrameNames names;
  names.Add(kUserFrame, kOwner, MakeLocation("first"));
  names.Add(kUserFrame, kOwner, MakeLocation("second"));
  EXPECT_EQ(names.Add(kUserFrame, kOwner, MadeUp("[unknown]")), 1);
  names.Add(kUserFrame, kOwner, MakeLocation("first"));
  EXPECT_EQ(names.Add(kUserFrame, kOwner, MadeUp("[unknown]")), 0);
}

TEST(FrameNames, KnowAFunctionAgainBySymbolWhateverIsInlinedIntoIt) {
  FrameNames names;
  Location location = *MakeLocation("function");
  location.lines.insert(location.lines.begin(),
                        {.function = "inlined", .system_name = {}, .file = "a.h"});
  const auto detailed = std::make_shared<const Location>(location);
  names.Add(kUserFrame, kOwner, MakeLocation("function"));
  EXPECT_EQ(names.Add(kUserFrame, kOwner, detailed), 0);
  EXPECT_THAT(std::move(names).Finish(), ElementsAre(detailed));
}

TEST(FrameNames, TakeUserAddressesForThoseOfOneProgramInOneProcess) {
  FrameNames names;
  const LocationRef leaf = MakeLocation("leaf");
  const FrameNames::Owner other{{Pid(8), StartTime(100)}, ExecId(1)};
  const FrameNames::Owner executed{kOwner.process, ExecId(2)};
  EXPECT_EQ(names.Add(kUserFrame, kOwner, leaf), 0);
  EXPECT_EQ(names.Add(kUserFrame, other, leaf), 1);
  EXPECT_EQ(names.Add(kUserFrame, executed, MadeUp("[unknown]")), 2);
  EXPECT_EQ(names.Add(kObjectFrame, kOwner, leaf), 3);
  EXPECT_EQ(names.Add(kObjectFrame, other, leaf), 3);
  EXPECT_EQ(names.Add(kKernelFrame, kOwner, leaf), 4);
  EXPECT_EQ(names.Add(kKernelFrame, other, leaf), 4);
}

TEST(FrameNames, DoNotNameAFileByAnother) {
  FrameNames names;  // an object id that was given to another file
  EXPECT_EQ(names.Add(kObjectFrame, kOwner, MakeLocation("f", CodeOrigin::kUser, MakeObject("/a"))),
            0);
  EXPECT_EQ(names.Add(kObjectFrame, kOwner, MadeUp("b+0x1000", MakeObject("/b"))), 1);
  const auto known_by_id = [](std::string path, std::byte id) {
    const auto object = MakeObject(std::move(path));
    object->build_id = BuildId(std::span(&id, 1));
    return object;
  };
  const Frame frame = Frame::Object(ObjectId(2), ElfAddress(0x1000));
  EXPECT_EQ(names.Add(frame, kOwner, MadeUp("c+0x1000", known_by_id("/c", std::byte{1}))), 2);
  EXPECT_EQ(names.Add(frame, kOwner, MadeUp("d+0x1000", known_by_id("/d", std::byte{1}))), 2);
  EXPECT_EQ(names.Add(frame, kOwner, MadeUp("c+0x1000", known_by_id("/c", std::byte{2}))), 3);
}

TEST(FrameNames, KeepNothingButTheLatestLocation) {
  FrameNames names;
  LocationRef location = MakeLocation("leaf");
  const std::weak_ptr<const Location> first = location;
  names.Add(kUserFrame, kOwner, location);
  location = MakeLocation("leaf");
  names.Add(kUserFrame, kOwner, location);
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace pyrometer
