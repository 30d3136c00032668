// SPDX-License-Identifier: Apache-2.0
#include "profile/pprof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/printable.h"
#include "profile/text.h"
#include "proto/pprof.pb.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

pprof::Profile Decode(const Profile& profile) {
  pprof::Profile decoded;
  EXPECT_TRUE(decoded.ParseFromString(Inflate(EncodePprof(profile))));
  return decoded;
}

const std::string& Text(const pprof::Profile& p, int64_t index) {
  return p.string_table(static_cast<int>(index));
}

// The functions of a sample, leaf first, inlined ones before what they were inlined into.
std::vector<std::string> NamesOf(const pprof::Profile& p, const pprof::Sample& sample) {
  std::vector<std::string> names;
  for (const uint64_t id : sample.location_id()) {
    for (const pprof::Line& line : p.location(static_cast<int>(id - 1)).line()) {
      names.push_back(Text(p, p.function(static_cast<int>(line.function_id() - 1)).name()));
    }
  }
  return names;
}

// "key=value" of each label.
std::vector<std::string> LabelsOf(const pprof::Profile& p, const pprof::Sample& sample) {
  std::vector<std::string> labels;
  for (const pprof::Label& label : sample.label()) {
    labels.push_back(Text(p, label.key()) + "=" +
                     (label.str() != 0 ? Text(p, label.str()) : std::to_string(label.num())));
  }
  return labels;
}

std::vector<std::string> MappingsOf(const pprof::Profile& p) {
  std::vector<std::string> names;
  for (const pprof::Mapping& mapping : p.mapping()) names.push_back(Text(p, mapping.filename()));
  return names;
}

TEST(EncodePprof, SaysWhatWasMeasuredAndWhen) {
  MadeProfile made;
  made.Add({MakeLocation("f")}, 3);
  const pprof::Profile p = Decode(made.profile());
  ASSERT_EQ(p.sample_type_size(), 2);
  EXPECT_EQ(Text(p, p.sample_type(0).type()), "samples");
  EXPECT_EQ(Text(p, p.sample_type(0).unit()), "count");
  EXPECT_EQ(Text(p, p.sample_type(1).type()), "cpu");
  EXPECT_EQ(Text(p, p.sample_type(1).unit()), "nanoseconds");
  EXPECT_EQ(Text(p, p.period_type().type()), "cpu");
  EXPECT_EQ(Text(p, p.period_type().unit()), "nanoseconds");
  EXPECT_EQ(p.period(), 10'000'000);
  EXPECT_EQ(Text(p, p.default_sample_type()), "cpu");
  EXPECT_EQ(p.time_nanos(), 1'000'000'000'000'000);
  EXPECT_EQ(p.duration_nanos(), 10'000'000'000);
  EXPECT_THAT(p.sample(0).value(), ElementsAre(3, 30'000'000));
}

TEST(EncodePprof, TakesItsSampleTypesFromTheProfile) {
  MadeProfile made;
  made.Add({MakeLocation("f")}, 3);
  made.profile().value_types = {{"waits", "count"}, {"offcpu", "nanoseconds"}};
  made.profile().samples[0].value = 123;
  const pprof::Profile p = Decode(made.profile());
  ASSERT_EQ(p.sample_type_size(), 2);
  EXPECT_EQ(Text(p, p.sample_type(0).type()), "waits");
  EXPECT_EQ(Text(p, p.sample_type(1).type()), "offcpu");
  EXPECT_EQ(Text(p, p.period_type().type()), "offcpu");
  EXPECT_EQ(Text(p, p.default_sample_type()), "offcpu");
  EXPECT_THAT(p.sample(0).value(), ElementsAre(3, 123));
}

TEST(EncodePprof, CountsPageFaults) {
  MadeProfile made;
  made.CountPageFaults(10).Add({MakeLocation("f")}, 3);
  const pprof::Profile p = Decode(made.profile());
  ASSERT_EQ(p.sample_type_size(), 2);
  EXPECT_EQ(Text(p, p.sample_type(0).type()), "samples");
  EXPECT_EQ(Text(p, p.sample_type(1).type()), "page-faults");
  EXPECT_EQ(Text(p, p.sample_type(1).unit()), "count");
  EXPECT_EQ(Text(p, p.period_type().type()), "page-faults");
  EXPECT_EQ(Text(p, p.period_type().unit()), "count");
  EXPECT_EQ(p.period(), 10);
  EXPECT_EQ(Text(p, p.default_sample_type()), "page-faults");
  EXPECT_THAT(p.sample(0).value(), ElementsAre(3, 30));
}

TEST(EncodePprof, OfNoWindowHasNoPeriod) {
  Profile profile;
  EXPECT_EQ(Decode(profile).period(), 0);
}

TEST(EncodePprof, LabelsEachSampleAsItsProcessIs) {
  MadeProfile made;
  made.profile().labels = {{"team", "db"}};
  const auto labels = std::make_shared<const Labels>(
      Labels{{"comm", "liar"}, {"pod", "web\n-1"}, {"team", "other"}});
  made.Add({MakeLocation("f")}, 1, {.comm = "a", .pid = 7, .thread = "t", .labels = labels});
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(LabelsOf(p, p.sample(0)),
              ElementsAre("pid=7", "comm=a", "thread=t", "team=db", "pod=web\uFFFD-1"));
}

TEST(EncodePprof, MapsAFileOnceThoughItWasForgottenMeanwhile) {
  MadeProfile made;
  auto known_better = MakeObject("/bin/x");
  const auto known_worse = MakeObject("/bin/x");
  known_worse->has_functions = false;
  made.Add({MakeLocation("f", CodeOrigin::kUser, known_worse),
            MakeLocation("g", CodeOrigin::kUser, known_better)},
           1);
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(MappingsOf(p), ElementsAre("/bin/x"));
  EXPECT_TRUE(p.mapping(0).has_functions());
}

TEST(EncodePprof, NeverHasADurationOfZero) {
  MadeProfile made;
  made.profile().duration = {};
  EXPECT_EQ(Decode(made.profile()).duration_nanos(), 1);
}

TEST(EncodePprof, LabelsEverySample) {
  MadeProfile made;
  made.profile().labels = {{"team", "db"}};
  made.Add({MakeLocation("f")}, 1, {.comm = "mongod", .pid = 7, .thread = "conn1"});
  made.Add({MakeLocation("g")}, 1, {.comm = "redis", .pid = 8, .thread = ""});
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(LabelsOf(p, p.sample(0)),
              ElementsAre("pid=7", "comm=mongod", "thread=conn1", "team=db"));
  EXPECT_THAT(LabelsOf(p, p.sample(1)),
              ElementsAre("pid=8", "comm=redis", "thread=redis", "team=db"));
}

TEST(EncodePprof, WritesStacksLeafFirstAndInlinesInnermostFirst) {
  Location location;
  location.lines = {
      {.function = "inner", .system_name = "_Zinner", .file = "a.h", .line = 5, .start_line = 3},
      {.function = "outer", .system_name = {}, .file = "a.cc", .line = 9}};
  MadeProfile made;
  made.Add({MakeLocation("main"), std::make_shared<const Location>(location)}, 1);
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(NamesOf(p, p.sample(0)), ElementsAre("inner", "outer", "main"));
  const pprof::Location& leaf = p.location(static_cast<int>(p.sample(0).location_id(0) - 1));
  EXPECT_EQ(leaf.line(0).line(), 5);
  EXPECT_EQ(leaf.line(1).line(), 9);
  EXPECT_EQ(Text(p, p.function(0).system_name()), "_Zinner");
  EXPECT_EQ(Text(p, p.function(0).filename()), "a.h");
  EXPECT_EQ(p.function(0).start_line(), 3);
  EXPECT_EQ(p.function(1).start_line(), 0);
  EXPECT_EQ(Text(p, p.function(1).system_name()), "outer");
}

TEST(EncodePprof, NumbersEverythingFromOneInOrderOfFirstUse) {
  MadeProfile made;
  const LocationRef unused = MakeLocation("unused");
  made.profile().locations.push_back(unused);
  const LocationRef shared = MakeLocation("shared", CodeOrigin::kUser, MakeObject("/bin/x"));
  for (int i = 0; i < 1000; ++i) {  // more than go into one part of the stream
    made.Add({shared, MakeLocation("f" + std::to_string(i))}, 1);
  }
  const pprof::Profile p = Decode(made.profile());
  ASSERT_EQ(p.location_size(), 1001);
  ASSERT_EQ(p.function_size(), 1001);
  for (int i = 0; i < 1001; ++i) {
    EXPECT_EQ(p.location(i).id(), i + 1);
    EXPECT_EQ(p.function(i).id(), i + 1);
  }
  for (int i = 0; i < p.mapping_size(); ++i) EXPECT_EQ(p.mapping(i).id(), i + 1);
  EXPECT_EQ(p.sample(0).location_id(0), 1);
  EXPECT_EQ(p.sample(0).location_id(1), 2);
  EXPECT_EQ(p.sample(1).location_id(0), 3);
  EXPECT_EQ(p.string_table(0), "");
  EXPECT_THAT(NamesOf(p, p.sample(999)), ElementsAre("f999", "shared"));
}

TEST(EncodePprof, HasEachStringOnce) {
  MadeProfile made;
  for (int i = 0; i < 600; ++i) made.Add({MakeLocation("f" + std::to_string(i % 3))}, 1);
  const pprof::Profile p = Decode(made.profile());
  std::map<std::string, int> count;
  for (const std::string& text : p.string_table()) ++count[text];
  for (const auto& [text, n] : count) EXPECT_EQ(n, 1) << text;
}

TEST(EncodePprof, PutsTheExecutableOfMostSamplesFirst) {
  const auto libc = MakeObject("/lib/libc.so.6");
  const auto small = MakeObject("/usr/bin/small");
  const auto big = MakeObject("/usr/bin/big");
  const auto kernel = MakeObject("[kernel.kallsyms]");
  MadeProfile made;
  made.Add({MakeLocation("k", CodeOrigin::kKernel, kernel)}, 500);
  made.Add({MakeLocation("main", CodeOrigin::kUser, small),
            MakeLocation("memcpy", CodeOrigin::kUser, libc)},
           10);
  made.Add({MakeLocation("main", CodeOrigin::kUser, big),
            MakeLocation("memcpy", CodeOrigin::kUser, libc)},
           20);
  EXPECT_THAT(MappingsOf(Decode(made.profile())),
              ElementsAre("/usr/bin/big", "[kernel.kallsyms]", "/lib/libc.so.6", "/usr/bin/small"));
}

TEST(EncodePprof, DescribesTheMapping) {
  auto object = MakeObject("/usr/bin/app");
  const std::array<std::byte, 3> id{std::byte{0xDE}, std::byte{0xAD}, std::byte{0x01}};
  object->build_id = BuildId(id);
  object->start = 0x401000;
  object->limit = 0x409000;
  object->file_offset = 0x1000;
  Location location;
  location.origin = CodeOrigin::kUser;
  location.object = object;
  location.address = 0x401234;
  location.lines = {{.function = "f", .system_name = {}, .file = "f.c", .line = 3}};
  MadeProfile made;
  made.Add({std::make_shared<const Location>(location)}, 1);
  const pprof::Profile p = Decode(made.profile());
  ASSERT_EQ(p.mapping_size(), 1);
  const pprof::Mapping& mapping = p.mapping(0);
  EXPECT_EQ(mapping.memory_start(), 0x401000);
  EXPECT_EQ(mapping.memory_limit(), 0x409000);
  EXPECT_EQ(mapping.file_offset(), 0x1000);
  EXPECT_EQ(Text(p, mapping.build_id()), "dead01");
  EXPECT_TRUE(mapping.has_functions());
  EXPECT_TRUE(mapping.has_filenames());
  EXPECT_TRUE(mapping.has_line_numbers());
  EXPECT_FALSE(mapping.has_inline_frames());
  EXPECT_EQ(p.location(0).address(), 0x401234);
  EXPECT_EQ(p.location(0).mapping_id(), 1);
}

TEST(EncodePprof, GivesCodeOfNoObjectAMappingByItsOrigin) {
  MadeProfile made;
  made.Add({MakeLocation("a", CodeOrigin::kUnknown), MakeLocation("b", CodeOrigin::kJit),
            MakeLocation("c", CodeOrigin::kKernel), MakeLocation("d", CodeOrigin::kKernel)},
           1);
  EXPECT_THAT(MappingsOf(Decode(made.profile())),
              ElementsAre("[kernel.kallsyms]", "[jit]", "[unknown]"));
}

TEST(EncodePprof, GivesACutStackARootThatSaysSo) {
  const LocationRef leaf = MakeLocation("leaf");
  MadeProfile made;
  made.Add({leaf}, 1, {.end = StackEnd::kTruncated});
  made.Add({leaf}, 1, {.end = StackEnd::kUnreadable, .thread = "t"});
  made.Add({leaf}, 2, {.end = StackEnd::kTruncated, .thread = "u"});
  made.Add({leaf}, 4);
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(NamesOf(p, p.sample(0)), ElementsAre("leaf", "[truncated]"));
  EXPECT_THAT(NamesOf(p, p.sample(1)), ElementsAre("leaf", "[unwind stopped: stack unreadable]"));
  EXPECT_EQ(p.sample(2).location_id(1), p.sample(0).location_id(1));
  EXPECT_THAT(NamesOf(p, p.sample(3)), ElementsAre("leaf"));
  EXPECT_EQ(Text(p, p.comment(1)), "4 of 8 samples have a stack that was cut");
}

TEST(EncodePprof, NamesFunctionsThatHaveNoName) {
  MadeProfile made;
  made.Add({std::make_shared<const Location>(), MakeLocation("")}, 1);
  const pprof::Profile p = Decode(made.profile());
  EXPECT_THAT(NamesOf(p, p.sample(0)), ElementsAre("[unknown]", "[unknown]"));
}

TEST(EncodePprof, WritesValidUtf8Only) {
  MadeProfile made;
  made.profile().labels = {{"k\xff", "v\xfe"}};
  made.Add({MakeLocation("\xc0\xaf"
                         "f"),
            MakeLocation("g\xff", CodeOrigin::kUser, MakeObject("/bin/\xff"))},
           1, {.comm = "\xff", .thread = "\x80"});
  const pprof::Profile p = Decode(made.profile());
  for (const std::string& text : p.string_table()) EXPECT_TRUE(IsPrintable(text)) << text;
}

TEST(EncodePprof, OfNothingIsAProfileWithoutSamples) {
  const pprof::Profile p = Decode(MadeProfile().profile());
  EXPECT_THAT(p.sample(), IsEmpty());
  EXPECT_EQ(p.sample_type_size(), 2);
  EXPECT_EQ(p.period(), 10'000'000);
}

}  // namespace
}  // namespace pyrometer
