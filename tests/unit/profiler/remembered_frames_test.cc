// SPDX-License-Identifier: Apache-2.0
#include "profiler/remembered_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

constexpr ProcessKey kJava{Pid(10), StartTime(100)};
constexpr ProcessKey kChild{Pid(11), StartTime(110)};
constexpr Frame kJit = Frame::User(Address(0x7f0000000010));
constexpr Frame kNamedJit = Frame::User(Address(0x7f0000000020));
const Frame kCode = Frame::Object(ObjectId(5), ElfAddress(0x1000));
const Frame kCodeWithLine = Frame::Object(ObjectId(5), ElfAddress(0x2000));
constexpr Frame kKernel = Frame::Kernel(KernelAddress(0xffffffffc0001000));

LocationRef Known(const std::string& name, const std::string& file = "") {
  auto location = std::make_shared<Location>();
  location->lines = {{.function = name, .system_name = name, .file = file}};
  return location;
}

LocationRef MadeUp(const std::string& name) {
  auto location = std::make_shared<Location>(*Known(name));
  location->quality = NameQuality::kMadeUp;
  return location;
}

class RememberedFramesTest : public testing::Test {
 protected:
  // A window in which `process` has one stack of all `frames`.
  static NamedWindow WindowOf(ProcessKey process, ExecId exec,
                              const std::vector<std::pair<Frame, LocationRef>>& frames) {
    NamedWindow named;
    Stack stack{.first_frame = 0, .user_frames = static_cast<uint16_t>(frames.size())};
    for (const auto& [frame, location] : frames) {
      named.window.frames.push_back(frame);
      named.locations.push_back(location);
      if (frame.kind() == Frame::Kind::kKernel) {
        ++stack.kernel_frames;
        --stack.user_frames;
      }
      if (frame.kind() == Frame::Kind::kUserAddress) stack.process = process;
    }
    named.window.stacks.push_back(stack);
    Sample sample{};
    sample.process = process;
    sample.exec = exec;
    named.window.samples.push_back(sample);
    return named;
  }
  void Note(const NamedWindow& named) { remembered_.Note(named, objects_, names_); }

  // What is asked for with the last window, and to whom it belongs.
  std::vector<std::pair<Frame, ProcessKey>> Last(std::vector<Renamed>* out = nullptr) {
    ResolvedWindow resolved;
    resolved.window.frames = {kKernel};
    resolved.window.stacks = {{.first_frame = 0, .kernel_frames = 1}};
    const RememberedFrames::Added added = remembered_.AddTo(resolved);
    last_objects_ = resolved.objects;
    last_names_ = {
        .perf_maps = resolved.perf_maps, .inherited = resolved.inherited, .jit_dumps = {}};
    NamedWindow named{.window = resolved.window, .locations = {}};
    for (const Frame frame : named.window.frames) {
      auto location = std::make_shared<Location>(*Known(std::to_string(frame.bits())));
      location->since = now_since_;
      named.locations.push_back(location);
    }
    const std::vector<Renamed> renamed = RememberedFrames::TakeOut(added, named);
    EXPECT_EQ(named.window.frames.size(), 1U) << "nobody else sees what was added";
    EXPECT_EQ(named.window.stacks.size(), 1U);
    EXPECT_EQ(named.locations.size(), 1U);
    std::vector<std::pair<Frame, ProcessKey>> frames;
    for (const Renamed& one : renamed) {
      frames.emplace_back(one.frame, one.process);
      EXPECT_EQ(one.location->lines.front().function, std::to_string(one.frame.bits()));
    }
    if (out != nullptr) *out = renamed;
    return frames;
  }

  RememberedFrames remembered_{true};
  MonotonicTime now_since_;  // at the end
  RememberedFrames::Objects objects_{
      {ObjectId(5), {.info = std::make_shared<const ObjectInfo>(), .file = nullptr}}};
  RememberedFrames::JitNames names_{
      .perf_maps = {{kJava, nullptr}}, .inherited = {}, .jit_dumps = {}};
  RememberedFrames::Objects last_objects_;
  RememberedFrames::JitNames last_names_;
};

TEST_F(RememberedFramesTest, AreThoseWhoseNameMayGetBetter) {
  Note(WindowOf(kJava, ExecId(1),
                {{kKernel, MadeUp("[kernel]+0x1")},
                 {kJit, MadeUp("[unknown]")},
                 {kNamedJit, Known("compiled")},
                 {kCode, Known("f")},
                 {kCodeWithLine, Known("g", "g.cc")}}));
  std::vector<Renamed> renamed;
  EXPECT_THAT(Last(&renamed), UnorderedElementsAre(Pair(kJit, kJava), Pair(kCode, ProcessKey())));
  for (const Renamed& one : renamed) {
    EXPECT_EQ(one.exec, one.frame == kJit ? ExecId(1) : ExecId(0));
  }
  EXPECT_EQ(last_objects_.at(ObjectId(5)).info, objects_.at(ObjectId(5)).info);
  EXPECT_TRUE(last_names_.perf_maps.contains(kJava));
  EXPECT_TRUE(remembered_.Needs(ObjectId(5)));
  EXPECT_FALSE(remembered_.Needs(ObjectId(6)));
}

TEST_F(RememberedFramesTest, AreNotOfAProgramThatIsGone) {
  Note(WindowOf(kJava, ExecId(1), {{kJit, MadeUp("[unknown]")}}));
  Note(WindowOf(kJava, ExecId(2), {{kNamedJit, MadeUp("[unknown]")}}));
  EXPECT_THAT(Last(), UnorderedElementsAre(Pair(kNamedJit, kJava)));
}

TEST_F(RememberedFramesTest, AreNotOfAnObjectWhoseIdIsAnothersNow) {
  Note(WindowOf(kJava, ExecId(1), {{kCode, Known("f")}}));
  objects_[ObjectId(5)].info = std::make_shared<const ObjectInfo>();
  Note(WindowOf(kJava, ExecId(1), {{kCodeWithLine, Known("g")}}));
  EXPECT_THAT(Last(), UnorderedElementsAre(Pair(kCodeWithLine, ProcessKey())));
}

TEST_F(RememberedFramesTest, BringThePerfMapsOfWhoHasForked) {
  names_.inherited[kChild] = {kJava};
  Note(WindowOf(kChild, ExecId(1), {{kJit, MadeUp("[unknown]")}}));
  EXPECT_THAT(Last(), UnorderedElementsAre(Pair(kJit, kChild)));
  EXPECT_TRUE(last_names_.perf_maps.contains(kJava));
  EXPECT_TRUE(last_names_.inherited.contains(kChild));
}

TEST_F(RememberedFramesTest, AreLeftOutWhereNoPerfMapCanNameThem) {
  names_.perf_maps.clear();
  Note(WindowOf(kJava, ExecId(1), {{kJit, MadeUp("[unknown]")}}));
  EXPECT_TRUE(Last().empty());
}

TEST_F(RememberedFramesTest, GetNoNameOfCodeThatCameToLieThereLater) {
  names_.jit_dumps[kChild] = {};
  for (const uint64_t end : {20, 30}) {
    NamedWindow named = WindowOf(kChild, ExecId(1), {{kJit, MadeUp("[unknown]")}});
    named.window.end = MonotonicTime(end);
    Note(named);
  }
  now_since_ = MonotonicTime(21);
  EXPECT_TRUE(Last().empty()) << "it was first seen before";
  now_since_ = MonotonicTime(20);
  EXPECT_THAT(Last(), UnorderedElementsAre(Pair(kJit, kChild)));
}

TEST_F(RememberedFramesTest, AreNotOfAProgramThatTheLastWindowShowsToBeGone) {
  Note(WindowOf(kJava, ExecId(1), {{kJit, MadeUp("[unknown]")}}));
  ResolvedWindow resolved;
  resolved.window = WindowOf(kJava, ExecId(2), {{kNamedJit, Known("new")}}).window;
  EXPECT_TRUE(remembered_.AddTo(resolved).programs.empty());
}

TEST_F(RememberedFramesTest, AreOfFunctionsWithoutLinesOnlyWhereLinesMayBeRead) {
  RememberedFrames remembered(false);
  const NamedWindow named =
      WindowOf(kJava, ExecId(1), {{kCode, Known("f")}, {kCodeWithLine, MadeUp("lib+0x2000")}});
  remembered.Note(named, objects_, names_);
  ResolvedWindow resolved;
  remembered.AddTo(resolved);
  EXPECT_EQ(resolved.window.frames, std::vector<Frame>{kCodeWithLine});
}

TEST_F(RememberedFramesTest, HoldPerfMapsOfSomeProgramsOnly) {
  for (uint32_t pid = 100; pid < 400; ++pid) {
    const ProcessKey process{Pid(pid), StartTime(1)};
    names_.perf_maps[process] = nullptr;
    Note(WindowOf(process, ExecId(1), {{kNamedJit, Known("compiled")}}));
    Note(WindowOf(process, ExecId(1), {{kJit, MadeUp("[unknown]")}}));
  }
  EXPECT_EQ(Last().size(), RememberedFrames::kMostPrograms);
  EXPECT_EQ(last_names_.perf_maps.size(), RememberedFrames::kMostPrograms);
}

TEST_F(RememberedFramesTest, FillAsManyStacksAsTheyNeed) {
  constexpr size_t kMany = 70'000;
  for (size_t begin = 0; begin < kMany; begin += 1000) {
    std::vector<std::pair<Frame, LocationRef>> frames;
    for (size_t i = begin; i < begin + 1000; ++i) {
      frames.emplace_back(Frame::User(Address(0x7f0000000000 + i)), MadeUp("[unknown]"));
    }
    Note(WindowOf(kJava, ExecId(1), frames));
  }
  EXPECT_EQ(Last().size(), kMany);
}

}  // namespace
}  // namespace pyrometer
