// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/debuginfod_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/unit/debuginfod/temporary_directory.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kLongest(60);
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

BuildId Id(unsigned char number) {
  return BuildId(std::vector<std::byte>(20, static_cast<std::byte>(number)));
}

class MovedClock : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(now_.load()); }
  void Advance(std::chrono::nanoseconds time) { now_ += static_cast<uint64_t>(time.count()); }

 private:
  std::atomic<uint64_t> now_{1};
};

// A made-up server: of each build id it knows what to do.
class Server {
 public:
  Server() : port_(server_.bind_to_any_port("127.0.0.1")) {
    server_.Get(R"(/buildid/([0-9a-f]+)/debuginfo)",
                [this](const httplib::Request& request, httplib::Response& response) {
                  ++asked_;
                  const auto answer = answers_.find(request.matches[1].str());
                  response.status = 404;
                  if (answer != answers_.end()) answer->second(response);
                });
  }
  ~Server() {
    hanging_.set_value();
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  using Answer = std::function<void(httplib::Response&)>;
  void On(const BuildId& id, Answer answer) { answers_[id.ToHex()] = std::move(answer); }
  void Have(const BuildId& id, const std::string& bytes) {
    On(id, [bytes](httplib::Response& response) {
      response.status = 200;
      response.set_content(bytes, "application/octet-stream");
    });
  }
  // Says nothing until the test ends.
  void Hang(const BuildId& id) {
    On(id, [released = hanging_.get_future().share()](httplib::Response&) { released.wait(); });
  }

  // To be called when no further process has to be forked.
  void Begin() {
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // What does not run yet is not stopped either.
    while (!server_.is_running()) std::this_thread::yield();
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int asked() const { return asked_; }

 private:
  httplib::Server server_;
  const int port_;
  std::map<std::string, Answer> answers_;
  std::promise<void> hanging_;
  std::atomic<int> asked_{0};
  std::thread thread_;
};

class DebuginfodClientTest : public testing::Test {
 protected:
  void SetUp() override {
    // Wherever the environment sends others.
    ::setenv("no_proxy", "127.0.0.1", 1);
    options_.downloads.urls = server_.url();
    options_.downloads.directory = directory_.path() + "/downloads";
    options_.downloads.most_bytes = kMostBytes;
    options_.time_limit = kLongest;
    options_.clock = &clock_;
    options_.pauses = {.first = std::chrono::nanoseconds(0), .longest = {}};
  }

  void Start() {
    Result<std::unique_ptr<DebuginfodClient>> client = DebuginfodClient::Start(options_);
    ASSERT_TRUE(client) << client.error().message();
    client_ = *std::move(client);
    server_.Begin();
  }

  using Found = std::shared_ptr<const UniqueFd>;
  std::future<Found> Ask(const BuildId& id) {
    auto promise = std::make_shared<std::promise<Found>>();
    const bool will_answer =
        client_->Find(id, [promise](Found file) { promise->set_value(std::move(file)); });
    if (!will_answer) promise->set_value(nullptr);
    return promise->get_future();
  }
  // What the file has in it, "-" if there is none.
  static std::string Told(std::future<Found> answer) {
    if (answer.wait_for(kLongest) != std::future_status::ready) return "no answer";
    const Found file = answer.get();
    if (file == nullptr) return "-";
    struct stat status {};
    EXPECT_EQ(::fstat(file->get(), &status), 0);
    std::string bytes(static_cast<size_t>(status.st_size), '\0');
    EXPECT_TRUE(ReadAt(file->get(), 0, std::as_writable_bytes(std::span(bytes))));
    EXPECT_EQ(::fcntl(file->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
    return bytes;
  }
  std::string Get(const BuildId& id) { return Told(Ask(id)); }

  const TemporaryDirectory directory_;
  MovedClock clock_;
  Server server_;
  DebuginfodClient::Options options_;
  std::unique_ptr<DebuginfodClient> client_;
};

TEST_F(DebuginfodClientTest, GetsAFileAndKeepsIt) {
  server_.Have(Id(1),
               "\x7f"
               "ELF, or whatever the server takes for it");
  Start();
  EXPECT_EQ(Get(Id(1)),
            "\x7f"
            "ELF, or whatever the server takes for it");
  EXPECT_EQ(Get(Id(1)),
            "\x7f"
            "ELF, or whatever the server takes for it");
  EXPECT_EQ(server_.asked(), 1);
  EXPECT_EQ(client_->counts().found, 2U);
}

TEST_F(DebuginfodClientTest, RemembersWhatNoServerHas) {
  Start();
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(client_->counts().none, 1U);
  clock_.Advance(DebuginfodClient::kRetry);
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(client_->counts().none, 2U);
}

TEST_F(DebuginfodClientTest, AsksOnceForAllWhoWait) {
  server_.Have(Id(1), "first");
  server_.Have(Id(2), "second");
  Start();
  std::vector<std::future<Found>> answers;
  for (int i = 0; i < 10; ++i) {
    answers.push_back(Ask(Id(1)));
    answers.push_back(Ask(Id(2)));
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(Told(std::move(answers[i])), i % 2 == 0 ? "first" : "second");
  }
  EXPECT_EQ(server_.asked(), 2);
}

TEST_F(DebuginfodClientTest, EndsAProcessThatWaitsTooLong) {
  server_.Hang(Id(1));
  server_.Have(Id(2), "still there");
  options_.time_limit = std::chrono::milliseconds(500);
  Start();
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(client_->counts().late, 1U);
  EXPECT_EQ(Get(Id(2)), "still there");
}

TEST_F(DebuginfodClientTest, LeavesNobodyWaitingWhenItEnds) {
  server_.Hang(Id(1));
  Start();
  std::future<Found> asked = Ask(Id(1));
  std::future<Found> behind = Ask(Id(2));
  while (server_.asked() == 0) std::this_thread::yield();
  client_.reset();
  EXPECT_EQ(Told(std::move(asked)), "-");
  EXPECT_EQ(Told(std::move(behind)), "-");
}

TEST_F(DebuginfodClientTest, TakesNoFileThatIsTooLarge) {
  const std::string large(kMostBytes + 1, 'x');
  server_.Have(Id(1), large);
  // Does not say how much there is.
  server_.On(Id(2), [&](httplib::Response& response) {
    response.status = 200;
    response.set_chunked_content_provider("application/octet-stream",
                                          [&](size_t offset, httplib::DataSink& sink) {
                                            if (offset > 0) return false;
                                            return sink.write(large.data(), large.size());
                                          });
  });
  server_.Have(Id(3), std::string(kMostBytes, 'x'));
  Start();
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(Get(Id(2)), "-");
  EXPECT_EQ(Get(Id(3)).size(), kMostBytes);
}

// Root enters any directory, but not once it has no capabilities.
TEST_F(DebuginfodClientTest, DoesNotStartWhereItCouldKeepNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to have a directory of another user";
  constexpr uid_t kNobody = 65534;
  const std::string theirs = directory_.path() + "/theirs";
  ASSERT_EQ(::mkdir(theirs.c_str(), 0700), 0);
  ASSERT_EQ(::chown(theirs.c_str(), kNobody, kNobody), 0);
  options_.downloads.directory = theirs + "/ours";
  const auto client = DebuginfodClient::Start(options_);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kPermission);
  EXPECT_NE(client.error().message().find(theirs), std::string::npos) << client.error().message();
}

TEST_F(DebuginfodClientTest, CountsServersThatCannotBeReached) {
  options_.downloads.urls = "http://127.0.0.1:1";
  Start();
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(client_->counts().failed, 1U);
}

TEST_F(DebuginfodClientTest, AsksNothingForAWhileAfterAFailure) {
  options_.pauses = {.first = std::chrono::seconds(10), .longest = std::chrono::minutes(10)};
  options_.work = [](const MessageSocket& socket) {
    socket.Send(DownloadReply{.what = DownloadReply::What::kReady}).has_value();
    DownloadRequest request;
    while (socket.Receive(request)) {
      const bool fails = request.build_id[0] == std::byte{1};
      socket
          .Send(DownloadReply{.what = fails ? DownloadReply::What::kFailed
                                            : DownloadReply::What::kNone})
          .has_value();
    }
  };
  Start();
  EXPECT_EQ(Get(Id(1)), "-");
  EXPECT_EQ(client_->counts().failed, 1U);
  EXPECT_EQ(Get(Id(2)), "-");
  EXPECT_EQ(client_->counts().refused, 1U);
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(Get(Id(2)), "-");
  EXPECT_EQ(client_->counts().none, 1U) << "it was no miss before";
}

TEST_F(DebuginfodClientTest, HasNoBottomlessQueue) {
  server_.Hang(Id(1));
  options_.most_waiting = 2;
  Start();
  std::vector<std::future<Found>> answers;
  answers.push_back(Ask(Id(1)));
  while (server_.asked() == 0) std::this_thread::yield();
  for (unsigned char i = 2; i < 6; ++i) answers.push_back(Ask(Id(i)));
  EXPECT_EQ(client_->counts().refused, 2U);
  client_.reset();
  for (std::future<Found>& answer : answers) EXPECT_EQ(Told(std::move(answer)), "-");
}

TEST_F(DebuginfodClientTest, AsksNoServerForWhatIsNoBuildId) {
  Start();
  EXPECT_EQ(Get(BuildId()), "-");
  EXPECT_EQ(Get(BuildId(std::vector<std::byte>(1))), "-");
  EXPECT_EQ(server_.asked(), 0);
}

// Processes that a server has taken over: the first does what it likes, the next is well.
struct Misdeed {
  const char* what;
  void (*commit)(const MessageSocket& socket);
};
constexpr DownloadReply kFoundIt{.what = DownloadReply::What::kFound};
const Misdeed kMisdeeds[] = {
    {"ends", [](const MessageSocket&) {}},
    {"sends no file", [](const MessageSocket& socket) { socket.Send(kFoundIt).has_value(); }},
    {"sends a directory",
     [](const MessageSocket& socket) {
       socket.Send(kFoundIt, Open("/", O_RDONLY)->get()).has_value();
     }},
    {"sends a device",
     [](const MessageSocket& socket) {
       socket.Send(kFoundIt, Open("/dev/zero", O_RDONLY)->get()).has_value();
     }},
    {"sends itself",
     [](const MessageSocket& socket) { socket.Send(kFoundIt, socket.fd()).has_value(); }},
    {"sends a message of another size",
     [](const MessageSocket& socket) { socket.Send(uint64_t{1}).has_value(); }},
    {"sends what nobody knows",
     [](const MessageSocket& socket) {
       socket.Send(DownloadReply{.what = static_cast<DownloadReply::What>(77)}).has_value();
     }},
};

TEST_F(DebuginfodClientTest, BelievesNothingThatTheProcessSays) {
  for (const Misdeed& misdeed : kMisdeeds) {
    options_.work = [&misdeed](const MessageSocket& socket) {
      socket.Send(DownloadReply{.what = DownloadReply::What::kReady}).has_value();
      DownloadRequest request;
      while (socket.Receive(request)) {
        if (request.build_id[0] == std::byte{1}) return misdeed.commit(socket);
        socket.Send(DownloadReply{.what = DownloadReply::What::kNone}).has_value();
      }
    };
    client_ = *DebuginfodClient::Start(options_);
    EXPECT_EQ(Get(Id(1)), "-") << misdeed.what;
    EXPECT_EQ(client_->counts().failed, 1U) << misdeed.what;
    EXPECT_EQ(Get(Id(2)), "-") << misdeed.what;
    EXPECT_EQ(client_->counts().none, 1U) << misdeed.what;
    client_.reset();
  }
}

TEST_F(DebuginfodClientTest, DoesNotBeginWithoutAServer) {
  ::unsetenv("DEBUGINFOD_URLS");
  options_.downloads.urls = "";
  const auto client = DebuginfodClient::Start(options_);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kInvalid);
}

TEST_F(DebuginfodClientTest, SaysWhatIsMissing) {
  options_.work = [](const MessageSocket& socket) {
    socket.Send(DownloadReply{.what = DownloadReply::What::kUnable}).has_value();
  };
  const auto client = DebuginfodClient::Start(options_);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(client.error().message().find("libdebuginfod1"), std::string::npos);
}

TEST_F(DebuginfodClientTest, TakesTheServersOfTheEnvironment) {
  ::setenv("DEBUGINFOD_URLS", server_.url().c_str(), 1);
  options_.downloads.urls = "";
  server_.Have(Id(1), "from there");
  Start();
  EXPECT_EQ(Get(Id(1)), "from there");
  ::unsetenv("DEBUGINFOD_URLS");
}

}  // namespace
}  // namespace pyrometer
