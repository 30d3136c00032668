// SPDX-License-Identifier: Apache-2.0
#include "profile/stack_batches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/pprof.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// `stacks` stacks of `depth` frames, of which those at the root are common to all.
Profile ManyStacks(uint32_t stacks, uint32_t depth, size_t name) {
  Profile profile = MadeProfile().profile();
  std::vector<uint32_t> common;
  for (uint32_t i = 0; i < stacks + depth; ++i) {
    std::string function = fmt::format("function_{}_", i);
    if (function.size() < name) function.resize(name, 'n');
    profile.locations.push_back(MakeLocation(std::move(function)));
  }
  for (uint32_t s = 0; s < stacks; ++s) {
    ProfileSample sample{.process = {}, .comm = {}, .thread = {}, .stack = {s}};
    for (uint32_t d = 1; d < depth; ++d) sample.stack.push_back(stacks + d);
    sample.end = StackEnd::kComplete;
    sample.count = s % 7 + 1;
    sample.value = sample.count * 100;
    profile.samples.push_back(std::move(sample));
  }
  return profile;
}

uint64_t CountOf(const StackBatches& batches) {
  uint64_t count = 0;
  for (const auto& batch : batches.batches) {
    for (const StackCount& stack : batch) count += stack.count;
  }
  return count;
}

uint64_t CountOf(const Profile& profile) {
  uint64_t count = 0;
  for (const ProfileSample& sample : profile.samples) count += sample.count;
  return count;
}

TEST(BatchStacks, OfNothingIsNothing) {
  EXPECT_THAT(BatchStacks(Profile(), {}).batches, IsEmpty());
  EXPECT_THAT(BatchStacks(Profile(), {.stacks = 1, .bytes = 10'000}).batches, IsEmpty());
}

TEST(BatchStacks, AddsUpEqualStacksButNotDifferentEnds) {
  MadeProfile made;
  const LocationRef f = MakeLocation("f");
  made.Add({f}, 1, {.pid = 1});
  made.Add({f}, 2, {.pid = 2});
  made.Add({f}, 4, {.end = StackEnd::kTruncated});
  const StackBatches batches = BatchStacks(made.profile(), {});
  ASSERT_THAT(batches.batches, ElementsAre(SizeIs(2)));
  EXPECT_EQ(batches.batches[0][0].count, 3);
  EXPECT_EQ(batches.batches[0][0].value, 30'000'000);
  EXPECT_EQ(batches.batches[0][1].count, 4);
}

TEST(BatchStacks, LosesNoTickUnderAnyLimit) {
  const Profile profile = ManyStacks(400, 10, 40);
  for (const size_t stacks : {size_t{1}, size_t{99}, size_t{100}, BatchLimits::kNone}) {
    for (const size_t bytes : {size_t{4'096}, size_t{50'000}, BatchLimits::kNone}) {
      const StackBatches batches = BatchStacks(profile, {.stacks = stacks, .bytes = bytes});
      EXPECT_EQ(CountOf(batches), CountOf(profile));
      for (const auto& batch : batches.batches) {
        EXPECT_THAT(batch, testing::Not(IsEmpty()));
        EXPECT_LE(batch.size(), stacks);
        EXPECT_LE(EncodePprofBatch(profile, batch, {}).plain_size, bytes);
      }
    }
  }
}

TEST(BatchStacks, FillsBatchesUpToTheirLimit) {
  EXPECT_THAT(BatchStacks(ManyStacks(2'001, 2, 0), {.stacks = 1'000}).batches,
              ElementsAre(SizeIs(1'000), SizeIs(1'000), SizeIs(1)));
  const Profile profile = ManyStacks(3'000, 10, 200);
  const StackBatches batches = BatchStacks(profile, {.bytes = 100'000});
  for (size_t i = 0; i + 1 < batches.batches.size(); ++i) {
    EXPECT_GT(EncodePprofBatch(profile, batches.batches[i], {}).plain_size, 60'000);
  }
}

TEST(BatchStacks, CutsDeepStacksAtTheRoot) {
  const Profile profile = ManyStacks(2, 10, 0);
  const StackBatches batches = BatchStacks(profile, {.depth = 4});
  ASSERT_THAT(batches.batches, ElementsAre(SizeIs(2)));
  const StackCount& stack = batches.batches[0][1];
  EXPECT_THAT(stack.stack, ElementsAre(1, 3, 4, 5));
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_EQ(batches.cut, CountOf(profile));
}

TEST(BatchStacks, CutsTheStackThatNoBatchCanHoldAndNoOther) {
  Profile profile = ManyStacks(3, 100, 300);
  profile.samples[0].stack.resize(2);
  profile.samples[2].stack.resize(2);
  const StackBatches batches = BatchStacks(profile, {.bytes = 10'000});
  ASSERT_THAT(batches.batches, ElementsAre(SizeIs(1), SizeIs(1), SizeIs(1)));
  EXPECT_EQ(batches.batches[0][0].end, StackEnd::kComplete);
  EXPECT_EQ(batches.batches[1][0].end, StackEnd::kTruncated);
  EXPECT_GT(batches.batches[1][0].stack.size(), 15);
  EXPECT_EQ(batches.batches[2][0].end, StackEnd::kComplete);
  EXPECT_EQ(batches.cut, profile.samples[1].count);
  EXPECT_LE(EncodePprofBatch(profile, batches.batches[1], {}).plain_size, 10'000);
}

TEST(BatchStacks, ReckonsWithWhatUnprintableBytesBecome) {
  Profile profile = MadeProfile().profile();
  for (uint32_t i = 0; i < 100; ++i) {
    profile.locations.push_back(MakeLocation(fmt::format("{}", i) + std::string(300, '\xFF')));
    ProfileSample sample{.process = {}, .comm = {}, .thread = {}, .stack = {i}};
    sample.end = StackEnd::kComplete;
    sample.count = 1;
    profile.samples.push_back(std::move(sample));
  }
  for (const auto& batch : BatchStacks(profile, {.bytes = 10'000}).batches) {
    EXPECT_LE(EncodePprofBatch(profile, batch, {}).plain_size, 10'000);
  }
}

TEST(EncodePprofBatch, ShortensLongNamesVisibly) {
  const Profile profile = ManyStacks(1, 1, 500);
  const StackBatches batches = BatchStacks(profile, {.name = 100});
  const EncodedPprof encoded =
      EncodePprofBatch(profile, batches.batches.at(0), {.name = 100, .comments = {"a=b"}});
  const std::string plain = Inflate(encoded.gzip);
  EXPECT_EQ(plain.size(), encoded.plain_size);
  EXPECT_NE(plain.find("n..."), std::string::npos);
  EXPECT_EQ(plain.find(std::string(98, 'n')), std::string::npos);
  EXPECT_NE(plain.find("a=b"), std::string::npos);
}

}  // namespace
}  // namespace pyrometer
