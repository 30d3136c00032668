// SPDX-License-Identifier: Apache-2.0
// ParcaSink, and with it GrpcClient, against a server in this process.
#include "export/parca_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "proto/parca.grpc.pb.h"
#include "proto/pprof.pb.h"
#include "proto/rpc_status.pb.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/grpc_server.h"
#include "tests/unit/export/raw_server.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

namespace store = parca::profilestore::v1alpha1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class Store final : public store::ProfileStoreService::Service {
 public:
  grpc::Status WriteRaw(grpc::ServerContext* context, const store::WriteRawRequest* request,
                        store::WriteRawResponse* /*response*/) override {
    return recorder.Take(*context, *request);
  }

  Recorder<store::WriteRawRequest> recorder;
};

std::unique_ptr<ParcaSink> MakeSink(const std::string& address, ClientOptions client = {}) {
  static const Clock clock;
  Result<std::unique_ptr<ParcaSink>> sink =
      ParcaSink::Make({.address = address, .insecure = true, .client = std::move(client)}, clock);
  EXPECT_TRUE(sink.has_value()) << sink.error().message();
  return *std::move(sink);
}

Parcel MakeParcel(const ParcaSink& sink) {
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("serve")}, 3, {.pid = 1});
  made.Add({MakeLocation("other")}, 4, {.pid = 2});
  made.profile().labels = {{"app.name", "x"}, {"service_name", "nginx"}};
  const Packed packed = sink.Pack(made.profile());
  EXPECT_EQ(packed.parcels.size(), 1);
  return packed.parcels.at(0);
}

TEST(ParcaSink, WritesOneProfileWithTheLabelsOfItsSeries) {
  Store service;
  const GrpcServer server(service);
  const auto sink = MakeSink(server.Address());
  const Parcel parcel = MakeParcel(*sink);
  EXPECT_EQ(parcel.samples, 7);
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
  const auto requests = service.recorder.Requests();
  ASSERT_EQ(requests.size(), 1);
  ASSERT_EQ(requests[0].series_size(), 1);
  std::vector<std::string> labels;
  for (const auto& label : requests[0].series(0).labels().labels()) {
    labels.push_back(label.name() + "=" + label.value());
  }
  EXPECT_THAT(labels, ElementsAre("__name__=process_cpu", "app_name=x", "service_name=nginx"));
  pprof::Profile profile;
  ASSERT_TRUE(profile.ParseFromString(Inflate(requests[0].series(0).samples(0).raw_profile())));
  EXPECT_EQ(profile.sample_size(), 2);
  EXPECT_EQ(profile.sample(0).label_size(), 0);
  EXPECT_GT(profile.duration_nanos(), 0);
}

TEST(GrpcClient, UsesAConnectionForOneBurstOfRequests) {
  Store service;
  const GrpcServer server(service);
  FakeClock clock;
  const auto client = GrpcClient::Make({.address = server.Address(),
                                        .insecure = true,
                                        .longest_use = seconds(3),
                                        .client = {.timeout = kTestPatience}},
                                       clock);
  const auto peer_of_call_after = [&](milliseconds time) {
    clock.Advance(time);
    EXPECT_TRUE((*client)
                    ->Call("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", "")
                    .has_value());
    return service.recorder.Peer();
  };
  const std::string first = peer_of_call_after(milliseconds(0));
  EXPECT_EQ(peer_of_call_after(milliseconds(2999)), first);
  EXPECT_NE(peer_of_call_after(milliseconds(1)), first);
}

TEST(ParcaSink, ShowsWhoItIs) {
  Store service;
  const GrpcServer server(service);
  const TemporaryTree tree;
  const std::string file = tree.Path("token");
  const auto sink =
      MakeSink(server.Address(), {.headers = {{"X-Project", "blue"}}, .bearer_token_file = file});
  const Parcel parcel = MakeParcel(*sink);
  EXPECT_EQ(sink->Deliver(parcel).reason, "credentials");
  for (const char* token : {"first", "second"}) {
    std::ofstream(file) << token;
    EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
    EXPECT_EQ(service.recorder.Metadata("authorization"), std::string("Bearer ") + token);
    EXPECT_EQ(service.recorder.Metadata("x-project"), "blue");
  }
}

struct StatusCase {
  grpc::StatusCode code;
  const char* reason;
  Outcome outcome;
};

class GrpcStatus : public testing::TestWithParam<StatusCase> {};

TEST_P(GrpcStatus, OfTheServerHasItsOutcome) {
  Store service;
  service.recorder.Answer({GetParam().code, "no, \x1b[31mnever"});
  const GrpcServer server(service);
  const auto sink = MakeSink(server.Address());
  const Receipt receipt = sink->Deliver(MakeParcel(*sink));
  EXPECT_EQ(receipt.outcome, GetParam().outcome);
  EXPECT_EQ(receipt.reason, GetParam().reason);
  EXPECT_THAT(receipt.message, HasSubstr("no, \xEF\xBF\xBD[31mnever"));
  EXPECT_EQ(service.recorder.Requests().size(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, GrpcStatus,
    testing::Values(StatusCase{grpc::CANCELLED, "cancelled", Outcome::kMaybeArrived},
                    StatusCase{grpc::UNKNOWN, "unknown", Outcome::kRejected},
                    StatusCase{grpc::INVALID_ARGUMENT, "invalid_argument", Outcome::kRejected},
                    StatusCase{grpc::DEADLINE_EXCEEDED, "timeout", Outcome::kMaybeArrived},
                    StatusCase{grpc::PERMISSION_DENIED, "permission_denied", Outcome::kNotArrived},
                    StatusCase{grpc::RESOURCE_EXHAUSTED, "resource_exhausted", Outcome::kRejected},
                    StatusCase{grpc::ABORTED, "aborted", Outcome::kNotArrived},
                    StatusCase{grpc::OUT_OF_RANGE, "out_of_range", Outcome::kNotArrived},
                    StatusCase{grpc::UNIMPLEMENTED, "unimplemented", Outcome::kRejected},
                    StatusCase{grpc::INTERNAL, "internal", Outcome::kRejected},
                    StatusCase{grpc::UNAVAILABLE, "unavailable", Outcome::kNotArrived},
                    StatusCase{grpc::DATA_LOSS, "data_loss", Outcome::kMaybeArrived},
                    StatusCase{grpc::UNAUTHENTICATED, "unauthenticated", Outcome::kNotArrived}),
    [](const auto& status) { return status.param.reason; });

TEST(GrpcClient, HonoursRetryInfo) {
  rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(7);
  info.mutable_retry_delay()->set_nanos(500'000'000);
  rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.DebugInfo");
  rpc::Any& detail = *details.add_details();
  detail.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  detail.set_value(info.SerializeAsString());
  Store service;
  const GrpcServer server(service);
  const auto sink = MakeSink(server.Address());
  for (const grpc::StatusCode code : {grpc::RESOURCE_EXHAUSTED, grpc::UNAVAILABLE}) {
    service.recorder.Answer({code, "slow down", details.SerializeAsString()});
    const Receipt receipt = sink->Deliver(MakeParcel(*sink));
    EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
    EXPECT_EQ(receipt.retry_after, milliseconds(7500));
  }
  service.recorder.Answer({grpc::RESOURCE_EXHAUSTED, "slow down", "\xFF no details"});
  EXPECT_EQ(sink->Deliver(MakeParcel(*sink)).retry_after, std::nullopt);
}

TEST(GrpcClient, KnowsThatNothingArrivesWhereNobodyListens) {
  const ReservedPort port;
  const auto sink = MakeSink(port.Address());
  const Receipt receipt = sink->Deliver(MakeParcel(*sink));
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_EQ(receipt.reason, "connect");
}

TEST(GrpcClient, KnowsThatNothingArrivesAtAnUnknownHost) {
  const auto sink = MakeSink("no-such-host.invalid:7070");
  const Receipt receipt = sink->Deliver(MakeParcel(*sink));
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_EQ(receipt.reason, "resolve");
}

TEST(GrpcClient, FindsTheServerAgainAfterAnOutage) {
  const ReservedPort port;
  Store service;
  const auto serve = [&] {
    return std::make_unique<GrpcServer>(service, grpc::InsecureServerCredentials(), port.number());
  };
  auto server = serve();
  const auto sink = MakeSink(port.Address());
  const Parcel parcel = MakeParcel(*sink);
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
  server.reset();
  const auto becomes = [&](Outcome outcome) {
    return Eventually([&] { return sink->Deliver(parcel).outcome == outcome; });
  };
  EXPECT_TRUE(becomes(Outcome::kNotArrived));
  server = serve();
  EXPECT_TRUE(becomes(Outcome::kDelivered));
  EXPECT_EQ(service.recorder.Requests().size(), 2);
}

TEST(GrpcClient, KnowsNotWhatArrivedAtAServerThatHangs) {
  Store service;
  service.recorder.Hang();
  const GrpcServer server(service);
  // The time may be over before the request is sent: then there is more of it.
  Receipt receipt;
  for (milliseconds timeout{300}; timeout < kTestPatience; timeout *= 2) {
    const auto sink = MakeSink(server.Address(), {.timeout = timeout});
    receipt = sink->Deliver(MakeParcel(*sink));
    if (receipt.outcome != Outcome::kNotArrived) break;
  }
  EXPECT_EQ(receipt.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(receipt.reason, "timeout");
}

// An HTTP/2 SETTINGS frame without settings: all that a client waits for.
std::string Http2Settings() {
  return {"\0\0\0\4\0\0\0\0\0", 9};
}

TEST(GrpcClient, KnowsNotWhatArrivedWhenTheConnectionIsLost) {
  RawServer server(
      {.answer = Http2Settings(), .reads = false, .closes = false, .holds_until_bytes = 400});
  const auto sink = MakeSink("127.0.0.1:" + std::to_string(server.port()));
  const Receipt receipt = sink->Deliver(MakeParcel(*sink));
  EXPECT_EQ(receipt.outcome, Outcome::kMaybeArrived) << receipt.message;
  EXPECT_EQ(receipt.reason, "connection_lost") << receipt.message;
}

TEST(GrpcClient, KnowsThatNothingArrivesAtAServerThatIsNone) {
  RawServer server({.answer = "220 mail.example.com ESMTP\r\n", .reads = false});
  const auto sink = MakeSink("127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(sink->Deliver(MakeParcel(*sink)).outcome, Outcome::kNotArrived);
}

TEST(GrpcClient, GivesUpConnectingAtItsDeadline) {
  RawServer server({.answer = "", .reads = false, .closes = false});
  const auto sink =
      MakeSink("127.0.0.1:" + std::to_string(server.port()), {.timeout = milliseconds(300)});
  const Receipt receipt = sink->Deliver(MakeParcel(*sink));
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived) << receipt.message;
}

TEST(GrpcClient, EndsWhatIsUnderWayWhenCancelled) {
  Store service;
  service.recorder.Hang();
  const GrpcServer server(service);
  const auto sink = MakeSink(server.Address(), {.timeout = seconds(60)});
  const Parcel parcel = MakeParcel(*sink);
  auto receipt = std::async(std::launch::async, [&] { return sink->Deliver(parcel); });
  service.recorder.WaitForRequests(1);
  sink->Cancel();
  ASSERT_EQ(receipt.wait_for(kTestPatience), std::future_status::ready);
  const Receipt cancelled = receipt.get();
  EXPECT_EQ(cancelled.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(cancelled.reason, "cancelled");
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kNotArrived);
}

TEST(GrpcClient, LetsGoOfItsConnectionWhenCancelled) {
  Store service;
  const GrpcServer server(service);
  const auto sink = MakeSink(server.Address());
  const Parcel parcel = MakeParcel(*sink);
  EXPECT_EQ(sink->Deliver(parcel).outcome, Outcome::kDelivered);
  EXPECT_EQ(ConnectionsTo(server.port()), 1);
  sink->Cancel();
  EXPECT_EQ(sink->Deliver(parcel).reason, "cancelled");
  EXPECT_TRUE(Eventually([&] { return ConnectionsTo(server.port()) == 0; }));
}

TEST(GrpcClient, RefusesOptionsThatCannotWork) {
  const FakeClock clock;
  const auto error = [&](const std::string& address, ClientOptions client = {}) {
    const auto sink = ParcaSink::Make({.address = address, .client = std::move(client)}, clock);
    return sink ? "" : sink.error().message();
  };
  EXPECT_EQ(error("parca:7070"), "");
  EXPECT_EQ(error("[::1]:7070"), "");
  for (const char* address : {"", "parca", ":7070", "parca:", "http://parca:7070", "parca:70a"}) {
    EXPECT_THAT(error(address), HasSubstr("host:port")) << address;
  }
  EXPECT_THAT(error("user:secret@parca:7070"), testing::Not(HasSubstr("secret")));
  EXPECT_THAT(error("parca:7070", {.headers = {{"Grpc-Timeout", "1"}}}), HasSubstr("itself"));
}

}  // namespace
}  // namespace pyrometer
