// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "tests/unit/server/server_fixture.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ProfileScrapeTest : public ServerTest {};

TEST_F(ProfileScrapeTest, AnswersAsGoProgramsDo) {
  Start();
  const Answer answer =
      Get("/debug/pprof/profile?seconds=14&seconds=15", "Accept-Encoding: gzip, br\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Type"), "application/octet-stream");
  EXPECT_EQ(answer.Header("Content-Disposition"), "attachment; filename=\"profile\"");
  EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(answer.Header("Content-Encoding"), "");  // it is the body that is gzip
  EXPECT_EQ(answer.body, std::string("\x1f\x8b made up \0 bytes", 17));
  EXPECT_EQ(agent_.queries()[0].duration, std::chrono::seconds(14));
}

TEST_F(ProfileScrapeTest, DecodesTheFilters) {
  Start();
  Get("/debug/pprof/profile?pid=3&pid=4&comm=a%20b&comm=c+d&label=k%3Dv%26w");
  const ProfileQuery query = agent_.queries()[0];
  EXPECT_EQ(query.duration, std::chrono::seconds(30));
  EXPECT_THAT(query.pids, ElementsAre(Pid(3), Pid(4)));
  EXPECT_THAT(query.comms, ElementsAre("a b", "c d"));
  EXPECT_THAT(query.labels.at("k"), ElementsAre("v&w"));
}

TEST_F(ProfileScrapeTest, ErrorsAreTextThatToolsShow) {
  agent_.fail_profiles = true;
  Start();
  const Answer wrong = Get("/debug/pprof/profile?seconds=0");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, StartsWith("seconds=0: "));
  const Answer failed = Get("/debug/pprof/profile");
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body, "no room for this profile\n");
  for (const Answer& answer : {wrong, failed}) {
    EXPECT_THAT(answer.Header("Content-Type"), StartsWith("text/plain"));
    EXPECT_EQ(answer.Header("X-Go-Pprof"), "1");
    EXPECT_EQ(answer.Header("Content-Disposition"), "");
  }
}

TEST_F(ProfileScrapeTest, HeadDoesNotCollect) {
  Start();
  TestClient client = Connect();
  client.Ask("/debug/pprof/profile", "", "HEAD");
  EXPECT_EQ(client.Receive(false).status, 200);
  EXPECT_TRUE(agent_.queries().empty());
}

TEST_F(ProfileScrapeTest, TheIndexSaysHow) {
  Start();
  for (const char* path : {"/debug/pprof/", "/debug/pprof"}) {
    const Answer index = Get(path);
    EXPECT_EQ(index.status, 200);
    EXPECT_THAT(index.body, HasSubstr("profile?seconds=30"));
  }
}

TEST_F(ProfileScrapeTest, ManyAtOnceDoNotBlockTheRestAndAreLimited) {
  agent_.Hold();
  Start();
  std::vector<TestClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(Connect());
    clients.back().Ask("/debug/pprof/profile?seconds=" + std::to_string(i + 1));
  }
  ASSERT_TRUE(agent_.AwaitStarted(8));
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/metrics").status, 200);
  const Answer refused = Get("/debug/pprof/profile?seconds=20");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.Header("Content-Type"), StartsWith("text/plain"));
  EXPECT_EQ(refused.Header("X-Go-Pprof"), "1");
  agent_.Release();
  for (TestClient& client : clients) EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(Get("/debug/pprof/profile?seconds=20").status, 200);
}

TEST_F(ProfileScrapeTest, AClientThatGoesAwayEndsItsOwnOnly) {
  agent_.Hold();
  Start();
  TestClient stays = Connect();
  stays.Ask("/debug/pprof/profile");
  {
    TestClient leaves = Connect();
    leaves.Ask("/debug/pprof/profile");
    ASSERT_TRUE(agent_.AwaitStarted(2));
  }
  EXPECT_TRUE(agent_.AwaitStopped(1));
  agent_.Release();
  EXPECT_EQ(stays.Receive().status, 200);
}

TEST_F(ProfileScrapeTest, TheNextProfileOnAConnectionIsWatchedToo) {
  Start();
  {
    TestClient client = Connect();
    EXPECT_EQ(client.Get("/debug/pprof/profile").status, 200);
    agent_.Hold();
    client.Ask("/debug/pprof/profile");
    ASSERT_TRUE(agent_.AwaitStarted(2));
  }
  EXPECT_TRUE(agent_.AwaitStopped(1));
}

TEST_F(ProfileScrapeTest, AStopEndsWhatIsUnderWay) {
  agent_.Hold();
  Start();
  TestClient client = Connect();
  client.Ask("/debug/pprof/profile");
  ASSERT_TRUE(agent_.AwaitStarted(1));
  server_.reset();  // hangs unless it is stopped
  EXPECT_TRUE(agent_.AwaitStopped(1));
  EXPECT_TRUE(client.Ended());
}

TEST_F(ProfileScrapeTest, AnExplanationEndsWithItsClientOrTheServer) {
  agent_.Hold();
  Start();
  TestClient stays = Connect();
  stays.Ask("/explain?pid=7");
  {
    TestClient leaves = Connect();
    leaves.Ask("/explain?pid=7");
    ASSERT_TRUE(agent_.AwaitStarted(2));
  }
  EXPECT_TRUE(agent_.AwaitStopped(1));
  server_.reset();  // hangs unless the other is stopped
  EXPECT_TRUE(agent_.AwaitStopped(2));
}

}  // namespace
}  // namespace pyrometer
