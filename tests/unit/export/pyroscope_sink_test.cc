// SPDX-License-Identifier: Apache-2.0
#include "export/pyroscope_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "proto/pprof.pb.h"
#include "proto/push.pb.h"
#include "tests/unit/export/raw_server.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<PyroscopeSink> MakeSink(PyroscopeSink::Options options) {
  Result<std::unique_ptr<PyroscopeSink>> sink = PyroscopeSink::Make(std::move(options));
  EXPECT_TRUE(sink.has_value()) << sink.error().message();
  return *std::move(sink);
}

std::unique_ptr<PyroscopeSink> MakeSink() {
  return MakeSink({.url = "http://127.0.0.1:1"});
}

Profile NginxProfile() {
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("serve")}, 3);
  made.profile().labels = {{"service_name", "nginx"}, {"zone", "b"}};
  return made.profile();
}

push::v1::PushRequest RequestOf(const Parcel& parcel) {
  push::v1::PushRequest request;
  EXPECT_TRUE(request.ParseFromString(parcel.body));
  EXPECT_EQ(request.series_size(), 1);
  EXPECT_EQ(request.series(0).samples_size(), 1);
  return request;
}

pprof::Profile PprofOf(const Parcel& parcel, size_t* plain_size = nullptr) {
  const std::string plain = Inflate(RequestOf(parcel).series(0).samples(0).raw_profile());
  if (plain_size != nullptr) *plain_size = plain.size();
  pprof::Profile profile;
  EXPECT_TRUE(profile.ParseFromString(plain));
  return profile;
}

std::vector<std::string> LabelsOf(const push::v1::RawProfileSeries& series) {
  std::vector<std::string> labels;
  for (const auto& label : series.labels()) labels.push_back(label.name() + "=" + label.value());
  return labels;
}

uint64_t SamplesOf(const Packed& packed) {
  uint64_t samples = 0;
  for (const Parcel& parcel : packed.parcels) samples += parcel.samples;
  return samples;
}

TEST(PyroscopeSink, PacksOneProfileWithTheLabelsOfItsSeries) {
  const Packed packed = MakeSink()->Pack(NginxProfile());
  ASSERT_EQ(packed.parcels.size(), 1);
  const Parcel& parcel = packed.parcels[0];
  EXPECT_EQ(parcel.samples, 3);
  EXPECT_EQ(parcel.series, R"({service_name="nginx",zone="b"})");
  EXPECT_EQ(parcel.begin, NginxProfile().begin);
  const auto request = RequestOf(parcel);
  EXPECT_THAT(LabelsOf(request.series(0)), ElementsAre("__delta__=false", "__name__=process_cpu",
                                                       "service_name=nginx", "zone=b"));
  EXPECT_THAT(request.series(0).samples(0).id(),
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                                    "[0-9a-f]{12}"));
  EXPECT_THAT(packed.dropped, IsEmpty());
  EXPECT_THAT(packed.altered, IsEmpty());
}

TEST(PyroscopeSink, MergesWhatDiffersOnlyInProcessOrThread) {
  MadeProfile made;
  const LocationRef f = MakeLocation("f");
  made.Add({f}, 3, {.pid = 1, .thread = "a"});
  made.Add({f}, 4, {.pid = 2, .thread = "b"});
  const pprof::Profile profile = PprofOf(MakeSink()->Pack(made.profile()).parcels.at(0));
  ASSERT_EQ(profile.sample_size(), 1);
  EXPECT_THAT(profile.sample(0).value(), ElementsAre(7, 70'000'000));
  EXPECT_EQ(profile.sample(0).label_size(), 0);
}

TEST(PyroscopeSink, ClaimsNoFunctionsSoThatAddressesAreKept) {
  MadeProfile made;
  made.Add({MakeLocation("f", CodeOrigin::kUser, MakeObject("/bin/f"))}, 1);
  const pprof::Profile profile = PprofOf(MakeSink()->Pack(made.profile()).parcels.at(0));
  ASSERT_EQ(profile.mapping_size(), 1);
  EXPECT_FALSE(profile.mapping(0).has_functions());
}

TEST(PyroscopeSink, GivesEverySampleAFrame) {
  MadeProfile made;
  made.Add({}, 1, {.end = StackEnd::kNoUserStack});
  const pprof::Profile profile = PprofOf(MakeSink()->Pack(made.profile()).parcels.at(0));
  EXPECT_EQ(profile.sample(0).location_id_size(), 1);
  EXPECT_THAT(profile.string_table(), testing::Contains("[unknown]"));
}

// Stacks of `depth` distinct functions each, with names of `name` bytes.
Profile LargeProfile(uint32_t stacks, uint32_t depth, size_t name) {
  MadeProfile made;
  Profile profile = made.profile();
  for (uint32_t s = 0; s < stacks; ++s) {
    ProfileSample sample{.process = {}, .comm = {}, .thread = {}, .stack = {}};
    sample.end = StackEnd::kComplete;
    sample.count = 1 + s % 3;
    sample.value = sample.count * 10;
    for (uint32_t d = 0; d < depth; ++d) {
      sample.stack.push_back(static_cast<uint32_t>(profile.locations.size()));
      std::string function = fmt::format("f{}_{}_", s, d);
      if (function.size() < name) function.resize(name, 'x');
      profile.locations.push_back(MakeLocation(std::move(function)));
    }
    profile.samples.push_back(std::move(sample));
  }
  return profile;
}

uint64_t SamplesOf(const Profile& profile) {
  return std::accumulate(profile.samples.begin(), profile.samples.end(), uint64_t{0},
                         [](uint64_t sum, const ProfileSample& s) { return sum + s.count; });
}

TEST(PyroscopeSink, SplitsByTheNumberOfSamples) {
  const Profile profile = LargeProfile(16'000, 1, 0);
  const Packed packed = MakeSink()->Pack(profile);
  EXPECT_EQ(packed.parcels.size(), 2);
  EXPECT_EQ(SamplesOf(packed), SamplesOf(profile));
  uint64_t sent = 0;
  for (const Parcel& parcel : packed.parcels) {
    const pprof::Profile piece = PprofOf(parcel);
    EXPECT_LE(piece.sample_size(), 16'000);
    for (const pprof::Sample& sample : piece.sample()) sent += sample.value(0);
  }
  EXPECT_EQ(sent, SamplesOf(profile));
}

TEST(PyroscopeSink, SplitsByTheUncompressedSizeAndFillsWhatItSends) {
  const Profile profile = LargeProfile(500, 30, 150);
  const Packed packed = MakeSink()->Pack(profile);
  uint64_t sent = 0;
  size_t total = 0;
  for (const Parcel& parcel : packed.parcels) {
    size_t size = 0;
    const pprof::Profile piece = PprofOf(parcel, &size);
    for (const pprof::Sample& sample : piece.sample()) sent += sample.value(0);
    EXPECT_LT(size, 2'000'000);
    total += size;
  }
  EXPECT_EQ(sent, SamplesOf(profile));
  EXPECT_LE(packed.parcels.size(), total / 1'200'000 + 1);
}

TEST(PyroscopeSink, CutsAtTheRootAndSaysSo) {
  const Packed packed = MakeSink()->Pack(LargeProfile(1, 3000, 0));
  const pprof::Profile profile = PprofOf(packed.parcels.at(0));
  ASSERT_EQ(profile.sample(0).location_id_size(), 1000);
  EXPECT_EQ(profile.sample(0).location_id(0), 1);
  const auto name_of = [&](uint64_t location) {
    const auto& line = profile.location(static_cast<int>(location - 1)).line(0);
    return profile.string_table(
        static_cast<int>(profile.function(static_cast<int>(line.function_id() - 1)).name()));
  };
  EXPECT_EQ(name_of(profile.sample(0).location_id(0)), "f0_0_");
  EXPECT_EQ(name_of(profile.sample(0).location_id(999)), "[truncated]");
  EXPECT_THAT(packed.altered, ElementsAre(testing::Pair("stack_cut", 1)));
}

TEST(PyroscopeSink, CutsAStackThatNoRequestCanHold) {
  const Profile profile = LargeProfile(1, 300, 8000);
  const Packed packed = MakeSink()->Pack(profile);
  EXPECT_EQ(packed.parcels.size(), 1);
  EXPECT_EQ(SamplesOf(packed), SamplesOf(profile));
  for (const Parcel& parcel : packed.parcels) {
    size_t size = 0;
    EXPECT_GT(PprofOf(parcel, &size).sample(0).location_id_size(), 200);
    EXPECT_LT(size, 2'000'000);
  }
}

TEST(PyroscopeSink, PostsWhatItPacked) {
  RawServer server({.answer = HttpText(200)});
  const auto sink = MakeSink({.url = server.Url(), .tenant = "blue"});
  const Packed packed = sink->Pack(NginxProfile());
  EXPECT_EQ(sink->Deliver(packed.parcels.at(0)).outcome, Outcome::kDelivered);
  const std::string request = server.Requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /push.v1.PusherService/Push HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Type: application/proto\r\n"));
  EXPECT_THAT(request, HasSubstr("X-Scope-OrgID: blue\r\n"));
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + packed.parcels[0].body));
}

TEST(PyroscopeSink, IngestsTheSameParcels) {
  RawServer server({.answer = HttpText(200)});
  const auto sink = MakeSink({.url = server.Url(), .ingest = true});
  const Packed packed = sink->Pack(NginxProfile());
  EXPECT_EQ(sink->Deliver(packed.parcels.at(0)).outcome, Outcome::kDelivered);
  const std::string request = server.Requests().at(0);
  EXPECT_TRUE(request.starts_with(
      "POST /ingest?name=nginx%7Bzone%3Db%7D&format=pprof&spyName=pyrometer HTTP/1.1\r\n"))
      << request;
  const std::string body = RequestOf(packed.parcels[0]).series(0).samples(0).raw_profile();
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + body));
}

TEST(PyroscopeSink, RefusesToIngestAForeignParcel) {
  const auto sink = MakeSink({.url = "http://127.0.0.1:1", .ingest = true});
  Parcel parcel;
  parcel.body = "\xFF\xFF";
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kRejected);
}

TEST(PyroscopeSink, TellsAnUndecodableProfileFromATroubledServer) {
  RawServer bad({.answer = HttpText(500, "", R"({"code":"unknown","message":"gzip: bad CRC"})")});
  const auto sink = MakeSink({.url = bad.Url()});
  const Parcel parcel = sink->Pack(NginxProfile()).parcels.at(0);
  const Receipt undecodable = sink->Deliver(parcel);
  EXPECT_EQ(undecodable.outcome, Outcome::kRejected);
  EXPECT_EQ(undecodable.reason, "undecodable");
  EXPECT_THAT(undecodable.message, HasSubstr("bad CRC"));

  RawServer troubled(
      {.answer = HttpText(500, "", R"({"code":"unknown","message":"no live replicas"})")});
  const Receipt temporary = MakeSink({.url = troubled.Url()})->Deliver(parcel);
  EXPECT_EQ(temporary.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(temporary.reason, "http_500");
}

}  // namespace
}  // namespace pyrometer
