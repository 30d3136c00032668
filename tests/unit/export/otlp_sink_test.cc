// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/otlp_profiles.grpc.pb.h"
#include "proto/rpc_status.pb.h"
#include "tests/unit/export/grpc_server.h"
#include "tests/unit/export/raw_server.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

namespace otlp = opentelemetry::proto::collector::profiles::v1development;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Collector final : public otlp::ProfilesService::Service {
 public:
  grpc::Status Export(grpc::ServerContext* context,
                      const otlp::ExportProfilesServiceRequest* request,
                      otlp::ExportProfilesServiceResponse* response) override {
    *response = answer;
    return recorder.Take(*context, *request);
  }

  otlp::ExportProfilesServiceResponse answer;
  Recorder<otlp::ExportProfilesServiceRequest> recorder;
};

std::unique_ptr<OtlpSink> MakeSink(OtlpSink::Options options) {
  static const Clock clock;
  Result<std::unique_ptr<OtlpSink>> sink = OtlpSink::Make(std::move(options), clock);
  EXPECT_TRUE(sink.has_value()) << sink.error().message();
  return *std::move(sink);
}

Profile MixedProfile() {
  MadeProfile made;
  auto object = MakeObject("/usr/bin/nginx");
  const std::byte id[] = {std::byte{0xAB}, std::byte{0xCD}};
  object->build_id = BuildId(id);
  const LocationRef main = MakeLocation("main", CodeOrigin::kUser, object);
  const LocationRef twin = MakeLocation("main", CodeOrigin::kUser, object);
  const LocationRef syscall = MakeLocation("do_syscall_64", CodeOrigin::kKernel);
  made.Add({main, syscall}, 3, {.pid = 1});
  made.Add({twin, syscall}, 4, {.pid = 2});
  made.Add({syscall}, 5, {.end = StackEnd::kTruncated});
  made.Add({}, 6, {.end = StackEnd::kNoUserStack});
  made.profile().labels = {{"__meta_x", "y"}, {"pod", "web-0"}, {"service_name", "nginx"}};
  return made.profile();
}

otlp::ExportProfilesServiceRequest RequestOf(const Parcel& parcel) {
  otlp::ExportProfilesServiceRequest request;
  EXPECT_TRUE(request.ParseFromString(Inflate(parcel.body)));
  return request;
}

otlp::ExportProfilesServiceRequest MixedRequest() {
  const auto sink = MakeSink({.endpoint = "http://127.0.0.1:1"});
  return RequestOf(sink->Pack(MixedProfile()).parcels.at(0));
}

TEST(OtlpSink, SendsOneProfileOfTicksAndTheirPeriod) {
  const auto request = MixedRequest();
  const otlp::Profile& profile = request.resource_profiles(0).scope_profiles(0).profiles(0);
  const auto text = [&](int index) { return request.dictionary().string_table(index); };
  EXPECT_EQ(text(profile.sample_type().type_strindex()), "samples");
  EXPECT_EQ(text(profile.sample_type().unit_strindex()), "count");
  EXPECT_EQ(text(profile.period_type().type_strindex()), "cpu");
  EXPECT_EQ(text(profile.period_type().unit_strindex()), "nanoseconds");
  EXPECT_EQ(profile.period(), 10'000'000);
  EXPECT_EQ(profile.time_unix_nano(), 1'000'000'000'000'000);
  EXPECT_EQ(profile.duration_nano(), 10'000'000'000);
  int64_t total = 0;
  for (const otlp::Sample& sample : profile.samples()) {
    ASSERT_EQ(sample.values_size(), 1);
    total += sample.values(0);
    EXPECT_GT(sample.stack_index(), 0);
    EXPECT_GT(request.dictionary().stack_table(sample.stack_index()).location_indices_size(), 0);
  }
  EXPECT_EQ(total, 18);
}

TEST(OtlpSink, NamesTheResourceByConvention) {
  const auto request = MixedRequest();
  std::vector<std::string> attributes;
  for (const auto& a : request.resource_profiles(0).resource().attributes()) {
    attributes.push_back(a.key() + "=" + a.value().string_value());
  }
  EXPECT_THAT(attributes, ElementsAre("k8s.pod.name=web-0", "service.name=nginx"));
}

template <typename Rows>
void ExpectDistinctAfterZero(const Rows& rows, const char* table) {
  ASSERT_GT(rows.size(), 0) << table;
  EXPECT_EQ(rows.Get(0).SerializeAsString(), "") << table;
  std::set<std::string> seen;
  for (const auto& row : rows) EXPECT_TRUE(seen.insert(row.SerializeAsString()).second) << table;
}

TEST(OtlpSink, HasZeroRowsAndNoRowTwice) {
  const auto request = MixedRequest();
  const otlp::ProfilesDictionary& dictionary = request.dictionary();
  ExpectDistinctAfterZero(dictionary.mapping_table(), "mapping");
  ExpectDistinctAfterZero(dictionary.location_table(), "location");
  ExpectDistinctAfterZero(dictionary.function_table(), "function");
  ExpectDistinctAfterZero(dictionary.link_table(), "link");
  ExpectDistinctAfterZero(dictionary.attribute_table(), "attribute");
  ExpectDistinctAfterZero(dictionary.stack_table(), "stack");
  EXPECT_EQ(dictionary.string_table(0), "");
  const std::set<std::string> strings(dictionary.string_table().begin(),
                                      dictionary.string_table().end());
  EXPECT_EQ(strings.size(), dictionary.string_table_size());
  // The two locations named main are one row.
  EXPECT_EQ(dictionary.location_table_size(), 5);
  EXPECT_THAT(dictionary.string_table(), Contains("[truncated]"));
  EXPECT_THAT(dictionary.string_table(), Contains("[unknown]"));
}

TEST(OtlpSink, SaysWhatMappingsAndFramesAre) {
  const auto request = MixedRequest();
  std::vector<std::string> attributes;
  for (const auto& a : request.dictionary().attribute_table()) {
    attributes.push_back(request.dictionary().string_table(a.key_strindex()) + "=" +
                         a.value().string_value());
  }
  EXPECT_THAT(attributes, testing::UnorderedElementsAre("=", "process.executable.build_id.gnu=abcd",
                                                        "profile.frame.type=native",
                                                        "profile.frame.type=kernel"));
}

TEST(OtlpSink, TellsLinesAndWhereFunctionsBegin) {
  Location location;
  location.origin = CodeOrigin::kUser;
  location.lines = {
      {.function = "inner", .system_name = {}, .file = "a.h", .line = 5, .start_line = 3},
      {.function = "outer", .system_name = {}, .file = "a.cc", .line = 9}};
  MadeProfile made;
  made.Add({std::make_shared<const Location>(location)}, 1);
  const auto sink = MakeSink({.endpoint = "http://127.0.0.1:1"});
  const auto request = RequestOf(sink->Pack(made.profile()).parcels.at(0));
  const otlp::ProfilesDictionary& dictionary = request.dictionary();
  std::vector<std::string> lines;
  for (const otlp::Line& line : dictionary.location_table(1).lines()) {
    const otlp::Function& function = dictionary.function_table(line.function_index());
    lines.push_back(fmt::format(
        "{} {}:{} from {}", dictionary.string_table(function.name_strindex()),
        dictionary.string_table(function.filename_strindex()), line.line(), function.start_line()));
  }
  EXPECT_THAT(lines, ElementsAre("inner a.h:5 from 3", "outer a.cc:9 from 0"));
}

TEST(OtlpSink, SplitsBelowTheLimitsOfGrpc) {
  MadeProfile made;
  Profile profile = made.profile();
  for (uint32_t i = 0; i < 6'000; ++i) {
    profile.locations.push_back(
        MakeLocation(fmt::format("function_{}", i) + std::string(i % 2 == 0 ? 700 : 0, 'x')));
    ProfileSample sample{.process = {}, .comm = {}, .thread = {}, .stack = {i}};
    sample.count = 2;
    profile.samples.push_back(std::move(sample));
  }
  const auto sink = MakeSink({.endpoint = "http://127.0.0.1:1"});
  const Packed packed = sink->Pack(profile);
  uint64_t samples = 0;
  for (const Parcel& parcel : packed.parcels) {
    EXPECT_LT(Inflate(parcel.body).size(), 2'000'000);
    samples += parcel.samples;
  }
  EXPECT_GT(packed.parcels.size(), 1);
  EXPECT_EQ(samples, 12'000);
}

TEST(OtlpSink, PostsCompressedProtobuf) {
  RawServer server({.answer = HttpText(200)});
  const auto sink = MakeSink({.endpoint = server.Url()});
  const Parcel parcel = sink->Pack(MixedProfile()).parcels.at(0);
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
  const std::string request = server.Requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /v1development/profiles HTTP/1.1\r\n")) << request;
  EXPECT_THAT(request, HasSubstr("Content-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + parcel.body));
}

TEST(OtlpSink, ExportsTheSameByGrpc) {
  Collector service;
  const GrpcServer server(service);
  for (const std::string& endpoint : {server.Address(), "http://" + server.Address() + "/"}) {
    const auto sink = MakeSink({.endpoint = endpoint, .grpc = true, .insecure = true});
    const Parcel parcel = sink->Pack(MixedProfile()).parcels.at(0);
    EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
    EXPECT_EQ(service.recorder.Requests().back().SerializeAsString(),
              RequestOf(parcel).SerializeAsString());
  }
}

otlp::ExportProfilesServiceResponse PartialSuccess(int64_t rejected, const std::string& message) {
  otlp::ExportProfilesServiceResponse response;
  response.mutable_partial_success()->set_rejected_profiles(rejected);
  response.mutable_partial_success()->set_error_message(message);
  return response;
}

TEST(OtlpSink, ReadsPartialSuccess) {
  Collector service;
  service.answer = PartialSuccess(1, "no room\n");
  const GrpcServer grpc_server(service);
  RawServer http_server(
      {.answer = HttpText(200, "", PartialSuccess(1, "no room\n").SerializeAsString())});
  for (const bool grpc : {true, false}) {
    const auto sink = MakeSink({.endpoint = grpc ? grpc_server.Address() : http_server.Url(),
                                .grpc = grpc,
                                .insecure = true});
    const Receipt receipt = sink->Deliver(sink->Pack(MixedProfile()).parcels.at(0));
    EXPECT_EQ(receipt.outcome, Outcome::kDelivered);
    EXPECT_EQ(receipt.rejected_samples, 18);
    EXPECT_EQ(receipt.reason, "partial_success");
    EXPECT_THAT(receipt.message, HasSubstr("no room"));
  }
}

TEST(OtlpSink, TakesAMessageWithoutRejectionsForAWarning) {
  RawServer server({.answer = HttpText(200, "", PartialSuccess(0, "too old").SerializeAsString())});
  const auto sink = MakeSink({.endpoint = server.Url()});
  const Receipt receipt = sink->Deliver(sink->Pack(MixedProfile()).parcels.at(0));
  EXPECT_EQ(receipt.outcome, Outcome::kDelivered);
  EXPECT_EQ(receipt.rejected_samples, 0);
  EXPECT_EQ(receipt.reason, "warning");
  EXPECT_EQ(receipt.message, "too old");
}

TEST(OtlpSink, SurvivesAnAnswerThatIsNoProtobuf) {
  RawServer server({.answer = HttpText(200, "", "<html>")});
  const auto sink = MakeSink({.endpoint = server.Url()});
  EXPECT_EQ(sink->Deliver(sink->Pack(MixedProfile()).parcels.at(0)).outcome, Outcome::kDelivered);
}

TEST(OtlpSink, QuotesTheServersStatus) {
  rpc::Status status;
  status.set_code(3);
  status.set_message("request is malformed");
  RawServer server({.answer = HttpText(400, "", status.SerializeAsString())});
  const auto sink = MakeSink({.endpoint = server.Url()});
  const Receipt receipt = sink->Deliver(sink->Pack(MixedProfile()).parcels.at(0));
  EXPECT_EQ(receipt.outcome, Outcome::kRejected);
  EXPECT_EQ(receipt.message, "HTTP 400: request is malformed");
}

TEST(OtlpSink, RefusesAForeignParcel) {
  const auto sink = MakeSink({.endpoint = "127.0.0.1:1", .grpc = true, .insecure = true});
  Parcel parcel;
  parcel.body = "not gzip";
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kRejected);
}

}  // namespace
}  // namespace pyrometer
