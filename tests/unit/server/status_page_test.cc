// SPDX-License-Identifier: Apache-2.0
#include "server/status_page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "server/shown_numbers.h"
#include "server/status_json.h"
#include "server/status_warnings.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/server/server_fixture.h"

namespace pyrometer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

AgentStatus SomeStatus() {
  AgentStatus status;
  status.host = "node";
  status.sampling.frequency = {99};
  status.sampling.configured = {99};
  status.sampling.ticks.exported = 900;
  status.sampling.ticks.idle = 100;
  status.sinks.push_back({.name = "files", .type = "file", .address = "/profiles"});
  return status;
}

TEST(StatusWarnings, AreNoneWhenAllIsWell) {
  EXPECT_THAT(WarningsOf(SomeStatus()), IsEmpty());
}

TEST(StatusWarnings, SayInWordsWhatTheNumbersMean) {
  AgentStatus status = SomeStatus();
  status.warnings = {"what the agent says"};
  status.sampling.frequency = {49};
  status.sampling.ticks.lost[Accounting::kInternal] = 250;
  status.sampling.cuts = {{"truncated", 450}};
  status.sinks[0].state = SinkStatus::State::kFailing;
  status.sinks[0].last_error = "disk full";
  status.sinks[0].dropped_samples = {{"a", 80}, {"b", 10}};
  status.cost.resident_bytes = 600;
  status.cost.kernel_bytes = 500;
  status.cost.memory_limit = 1024;
  EXPECT_THAT(
      WarningsOf(status),
      ElementsAre(
          "what the agent says", HasSubstr("49 Hz instead of 99 Hz"),
          StartsWith("20.0 % of all ticks were lost"), StartsWith("50.0 % of the stacks are cut"),
          "Nothing arrives at files: disk full",
          StartsWith("90 samples for files were dropped since the agent began, 10.0 % of all"),
          HasSubstr("1.1 KiB of memory, more than its budget of 1.0 KiB")));
}

TEST(StatusWarnings, LeaveSmallLossesToTheNumbers) {
  AgentStatus status = SomeStatus();
  status.sampling.ticks.lost[Accounting::kMapBusy] = 1;
  status.sampling.cuts = {{"truncated", 9}};
  EXPECT_THAT(WarningsOf(status), IsEmpty());
}

TEST(StatusPage, ShowsEveryStringAsText) {
  constexpr const char* kHostile = "<script>'\"&\n\xff";
  AgentStatus status = SomeStatus();
  status.host = status.version = kHostile;
  status.labels = {{kHostile, kHostile}};
  status.sampling.filters = {kHostile};
  status.sampling.cuts = {{kHostile, 1}};
  status.sinks[0] = {.name = kHostile,
                     .type = kHostile,
                     .address = kHostile,
                     .dropped_samples = {{kHostile, 1}},
                     .last_error = kHostile};
  status.choices = {{.name = kHostile, .values = {{kHostile, 1}}, .left_out = 1}};
  status.warnings = {kHostile};
  const std::string page = StatusPage(status);
  EXPECT_THAT(page, Not(HasSubstr("<script>'")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;&#39;&quot;&amp;\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(StatusPage, IsWholeBeforeAnythingWasSampled) {
  const std::string page = StatusPage({});
  EXPECT_THAT(page, AllOf(HasSubstr("none yet"), HasSubstr("0 (0.0 %)"),
                          HasSubstr("Profiles go nowhere."), Not(HasSubstr("nan"))));
}

TEST(StatusPage, OffersTheValuesOfLabels) {
  AgentStatus status = SomeStatus();
  status.choices = {
      {.name = "pod", .values = {{"web-0", 7}, {std::string(70, 'x'), 2}}, .left_out = 1234}};
  const std::string page = StatusPage(status);
  EXPECT_THAT(page, HasSubstr("<option value=\"pod=web-0\">web-0</option>"));
  EXPECT_THAT(page, HasSubstr("<option value=\"pod=" + std::string(70, 'x') + "\">" +
                              std::string(57, 'x') + "...</option>"));
  EXPECT_THAT(page, HasSubstr("<option disabled>and 1,234 more</option>"));
  const auto parsed = nlohmann::json::parse(StatusJson(status))["recent_labels"];
  EXPECT_EQ(parsed[0]["label"], "pod");
  EXPECT_EQ(parsed[0]["values"][0]["value"], "web-0");
  EXPECT_EQ(parsed[0]["values"][0]["samples"], 7);
  EXPECT_EQ(parsed[0]["values_left_out"], 1234);
}

TEST(StatusJson, HasNullForWhatIsNotKnownAndTextForAnyBytes) {
  AgentStatus status = SomeStatus();
  status.sinks[0].last_error = "\xff";
  const auto parsed = nlohmann::json::parse(StatusJson(status));
  EXPECT_TRUE(parsed["sinks"][0]["behind_seconds"].is_null());
  EXPECT_TRUE(parsed["sampling"]["last_window"].is_null());
  EXPECT_EQ(parsed["sinks"][0]["last_error"], "\xEF\xBF\xBD");
  EXPECT_EQ(parsed["sampling"]["ticks"]["total"], 1000);
  EXPECT_EQ(parsed["sampling"]["ticks"]["lost"]["map_busy"], 0);
}

TEST(ShownNumbers, ReadAsPeopleWriteThem) {
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  using std::chrono::seconds;
  EXPECT_EQ(ShownCount(0), "0");
  EXPECT_EQ(ShownCount(999), "999");
  EXPECT_EQ(ShownCount(1'000), "1,000");
  EXPECT_EQ(ShownCount(~uint64_t{0}), "18,446,744,073,709,551,615");
  EXPECT_EQ(ShownShare(0), "0.0 %");
  EXPECT_EQ(ShownShare(0.0001), "under 0.1 %");
  EXPECT_EQ(ShownShare(1.25), "125.0 %");
  EXPECT_EQ(ShownBytes(1023), "1023 B");
  EXPECT_EQ(ShownBytes(1536), "1.5 KiB");
  EXPECT_EQ(ShownBytes((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(ShownDuration(milliseconds(-5)), "0.0 s");
  EXPECT_EQ(ShownDuration(milliseconds(59'940)), "59.9 s");
  EXPECT_EQ(ShownDuration(milliseconds(59'960)), "1 min");
  EXPECT_EQ(ShownDuration(seconds(3599)), "59 min 59 s");
  EXPECT_EQ(ShownDuration(minutes(187)), "3 h 7 min");
  EXPECT_EQ(ShownDuration(minutes(24 * 60 * 2 + 60 * 4)), "2 d 4 h");
}

class PageTest : public ServerTest {};

TEST_F(PageTest, ComesWithAPolicyThatAllowsOnlyItsOwnScript) {
  agent_.status = SomeStatus();
  Start();
  const Answer answer = Get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(answer.Header("Content-Security-Policy"),
              AllOf(StartsWith("default-src 'none'; script-src 'sha256-"), Not(HasSubstr("unsafe")),
                    HasSubstr("frame-ancestors 'none'")));
  EXPECT_THAT(answer.body, HasSubstr("/profiles"));
}

TEST_F(PageTest, NeedsTheToken) {
  TemporaryTree tree;
  tree.File("token", "s3cret");
  Start({.clock = clock_, .bearer_token_file = tree.Path("token")});
  for (const char* path : {"/", "/api/status", "/flamegraph", "/explain?pid=7"}) {
    EXPECT_EQ(Get(path).status, 401) << path;
    EXPECT_EQ(Get(path, "Authorization: Bearer s3cret\r\n").status, 200) << path;
  }
}

TEST_F(PageTest, TheStatusComesAsJsonToo) {
  agent_.status = SomeStatus();
  Start();
  const Answer answer = Get("/api/status");
  EXPECT_EQ(answer.Header("Content-Type"), "application/json");
  EXPECT_EQ(nlohmann::json::parse(answer.body)["host"], "node");
}

TEST_F(PageTest, TheFlameGraphIsSandboxedAndOfTheSpanAskedFor) {
  Start();
  const Answer usual = Get("/flamegraph");
  EXPECT_THAT(usual.body, HasSubstr("flames of 300 s"));
  EXPECT_THAT(usual.Header("Content-Security-Policy"), StartsWith("sandbox allow-scripts;"));
  EXPECT_THAT(Get("/flamegraph?seconds=60").body, HasSubstr("flames of 60 s"));
  for (const char* span : {"0", "3601", "x", "-1"}) {
    EXPECT_EQ(Get(std::string("/flamegraph?seconds=") + span).status, 400) << span;
  }
}

TEST_F(PageTest, TheFlameGraphIsOfTheSamplesAskedFor) {
  Start();
  EXPECT_THAT(Get("/flamegraph?label=pod=web-0&label=pod=db&label=namespace%3Dshop&comm=nginx&pid="
                  "7&seconds=9")
                  .body,
              HasSubstr("flames of 9 s of namespace=shop, pod=web-0 or db, process nginx, pid 7<"));
  EXPECT_THAT(Get("/flamegraph?seconds=60&label=&label=&pid=&comm=").body,
              HasSubstr("flames of 60 s of <"));
  for (const char* filter : {"label=web", "label==web", "pid=0", "pid=x"}) {
    EXPECT_EQ(Get(std::string("/flamegraph?") + filter).status, 400) << filter;
  }
}

TEST_F(PageTest, ExplainsTheLabelsOfAProcess) {
  Start();
  const Answer answer = Get("/explain?pid=7");
  EXPECT_EQ(answer.Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(answer.Header("Content-Security-Policy"), StartsWith("default-src 'none';"));
  EXPECT_THAT(answer.body, AllOf(HasSubstr("<h1>Labels of process 7</h1>"),
                                 HasSubstr("process 7\n  pod &quot;&lt;b&gt;&quot;\n</pre>")));
  EXPECT_EQ(Get("/explain?pid=404").status, 404);
  EXPECT_THAT(Get("/explain?pid=404").body, HasSubstr("there is no process 404"));
  EXPECT_EQ(Get("/explain?pid=503").status, 503);
  for (const char* pid : {"", "?pid=", "?pid=0", "?pid=-1", "?pid=x", "?pid=99999999999"}) {
    EXPECT_EQ(Get(std::string("/explain") + pid).status, 400) << pid;
  }
}

}  // namespace
}  // namespace pyrometer
