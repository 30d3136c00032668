// SPDX-License-Identifier: Apache-2.0
// What both clients, HTTP and gRPC, do about certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "export/parca_sink.h"
#include "export/pyroscope_sink.h"
#include "proto/parca.grpc.pb.h"
#include "tests/unit/base/test_certificates.h"
#include "tests/unit/export/grpc_server.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

namespace store = parca::profilestore::v1alpha1;

enum class Protocol { kHttp, kGrpc };

struct ServerIdentity {
  std::string certificate;  // NAME of NAME.crt and NAME.key
  std::string client_ca;    // NAME of the authority that clients must be known to; "": none
};

// A server that takes everything, on a free port or the given one.
class TlsServer {
 public:
  TlsServer(Protocol protocol, const TemporaryTree& tree, const ServerIdentity& identity,
            int port = 0) {
    const std::string path = tree.Path(identity.certificate);
    const std::string ca = identity.client_ca.empty() ? "" : tree.Path(identity.client_ca) + ".crt";
    if (protocol == Protocol::kHttp) {
      http_ = std::make_unique<httplib::SSLServer>((path + ".crt").c_str(), (path + ".key").c_str(),
                                                   ca.empty() ? nullptr : ca.c_str());
      http_->set_keep_alive_timeout(1);  // which stop() waits for
      http_->Post(".*", [](const httplib::Request&, httplib::Response&) {});
      port_ = port == 0 ? http_->bind_to_any_port("127.0.0.1") : port;
      if (port != 0) {
        EXPECT_TRUE(http_->bind_to_port("127.0.0.1", port));
      }
      thread_ = std::thread([this] { http_->listen_after_bind(); });
      // Connections wait in the backlog of the bound socket; but only what runs can be stopped.
      while (!http_->is_running()) std::this_thread::yield();
      return;
    }
    grpc::SslServerCredentialsOptions options(
        ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                   : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_key_cert_pairs.push_back({ContentOf(path + ".key"), ContentOf(path + ".crt")});
    if (!ca.empty()) options.pem_root_certs = ContentOf(ca);
    grpc_ = std::make_unique<GrpcServer>(service_, grpc::SslServerCredentials(options), port);
    port_ = grpc_->port();
  }
  ~TlsServer() {
    if (http_ != nullptr) http_->stop();
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return port_; }

 private:
  class Store final : public store::ProfileStoreService::Service {
    grpc::Status WriteRaw(grpc::ServerContext* /*context*/,
                          const store::WriteRawRequest* /*request*/,
                          store::WriteRawResponse* /*response*/) override {
      return grpc::Status::OK;
    }
  };

  int port_ = 0;
  std::unique_ptr<httplib::SSLServer> http_;
  std::thread thread_;
  Store service_;
  std::unique_ptr<GrpcServer> grpc_;
};

class ClientTlsTest : public testing::TestWithParam<Protocol> {
 protected:
  static void SetUpTestSuite() {
    std::signal(SIGPIPE, SIG_IGN);  // as the program does; libcurl leaves signals alone
    tree_ = new TemporaryTree;
    MakeAuthority(*tree_, "authority");
    MakeAuthority(*tree_, "stranger");
    MakeCertificate(*tree_, "authority", "server", "DNS:localhost,IP:127.0.0.1");
    MakeCertificate(*tree_, "authority", "profiles", "DNS:profiles.example");
    MakeCertificate(*tree_, "stranger", "impostor", "DNS:localhost,IP:127.0.0.1");
    MakeCertificate(*tree_, "authority", "client", "DNS:client");
    MakeCertificate(*tree_, "stranger", "unknown", "DNS:client");
  }
  static void TearDownTestSuite() {
    delete tree_;
    tree_ = nullptr;
  }

  static std::string File(const std::string& name) { return tree_->Path(name); }

  static void Replace(const std::string& file, const std::string& by) {
    std::ofstream(File("new")) << ContentOf(File(by));
    std::filesystem::rename(File("new"), File(file));
  }

  static std::unique_ptr<ProfileSink> MakeSink(int port, ClientTls tls) {
    const ClientOptions client{.tls = std::move(tls)};
    const std::string address = "localhost:" + std::to_string(port);
    if (GetParam() == Protocol::kHttp) {
      auto sink = PyroscopeSink::Make({.url = "https://" + address, .client = client});
      EXPECT_TRUE(sink.has_value());
      return *std::move(sink);
    }
    static const Clock clock;
    auto sink = ParcaSink::Make({.address = address, .client = client}, clock);
    EXPECT_TRUE(sink.has_value());
    return *std::move(sink);
  }

  static Receipt Deliver(ProfileSink& sink) {
    MadeProfile made;
    made.Add({MakeLocation("main")}, 1);
    return sink.Deliver(sink.Pack(made.profile()).parcels.at(0));
  }

  static void ExpectDelivered(ProfileSink& sink) {
    const Receipt receipt = Deliver(sink);
    EXPECT_EQ(receipt.outcome, Outcome::kDelivered) << receipt.reason << ": " << receipt.message;
  }

  static void ExpectRefused(ProfileSink& sink) {
    const Receipt receipt = Deliver(sink);
    EXPECT_EQ(receipt.outcome, Outcome::kNotArrived) << receipt.reason << ": " << receipt.message;
    EXPECT_EQ(receipt.reason, "tls") << receipt.message;
  }

  // With TLS 1.3 it learns so only after its own handshake: from an alert, or from no more than the
  // end of the connection.
  static void ExpectRefusedByServer(ProfileSink& sink) {
    const Receipt receipt = Deliver(sink);
    EXPECT_NE(receipt.outcome, Outcome::kDelivered);
    EXPECT_THAT(receipt.reason, testing::AnyOf("tls", "connect", "connection_lost"));
  }

  static TemporaryTree* tree_;
};

TemporaryTree* ClientTlsTest::tree_ = nullptr;

TEST_P(ClientTlsTest, TrustsTheAuthorityItIsTold) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = ""});
  ExpectDelivered(*MakeSink(server.port(), {.ca_file = File("authority.crt")}));
}

TEST_P(ClientTlsTest, TrustsNoOther) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = ""});
  ExpectRefused(*MakeSink(server.port(), {}));
  ExpectRefused(*MakeSink(server.port(), {.ca_file = File("stranger.crt")}));
  EXPECT_EQ(Deliver(*MakeSink(server.port(), {.ca_file = File("missing.crt")})).outcome,
            Outcome::kNotArrived);
}

TEST_P(ClientTlsTest, ExpectsTheNameOfTheHostOrTheOneItIsTold) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "profiles", .client_ca = ""});
  const std::string ca = File("authority.crt");
  ExpectRefused(*MakeSink(server.port(), {.ca_file = ca}));
  ExpectDelivered(*MakeSink(server.port(), {.ca_file = ca, .server_name = "profiles.example"}));
  ExpectRefused(*MakeSink(server.port(), {.ca_file = ca, .server_name = "other.example"}));
}

TEST_P(ClientTlsTest, ShowsItsCertificate) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = "authority"});
  const std::string ca = File("authority.crt");
  ExpectRefusedByServer(*MakeSink(server.port(), {.ca_file = ca}));
  ExpectRefusedByServer(*MakeSink(
      server.port(),
      {.ca_file = ca, .cert_file = File("unknown.crt"), .key_file = File("unknown.key")}));
  ExpectDelivered(
      *MakeSink(server.port(),
                {.ca_file = ca, .cert_file = File("client.crt"), .key_file = File("client.key")}));
}

TEST_P(ClientTlsTest, ReadsFilesAgainThatWereReplaced) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = "authority"});
  Replace("current_ca.crt", "stranger.crt");
  Replace("current.crt", "unknown.crt");
  Replace("current.key", "unknown.key");
  const auto sink = MakeSink(server.port(), {.ca_file = File("current_ca.crt"),
                                             .cert_file = File("current.crt"),
                                             .key_file = File("current.key")});
  ExpectRefused(*sink);
  Replace("current_ca.crt", "authority.crt");
  ExpectRefusedByServer(*sink);
  Replace("current.crt", "client.crt");
  Replace("current.key", "client.key");
  ExpectDelivered(*sink);
}

// As a rotation may leave them for a moment.
TEST_P(ClientTlsTest, SendsNothingWithFilesThatAreNoCertificates) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = "authority"});
  std::ofstream(File("empty"));
  std::ofstream(File("half")) << ContentOf(File("client.crt")).substr(0, 100);
  for (const char* bad : {"empty", "half"}) {
    const ClientTls good{.ca_file = File("authority.crt"),
                         .cert_file = File("client.crt"),
                         .key_file = File("client.key")};
    for (std::string ClientTls::*file :
         {&ClientTls::ca_file, &ClientTls::cert_file, &ClientTls::key_file}) {
      ClientTls tls = good;
      tls.*file = File(bad);
      const Receipt receipt = Deliver(*MakeSink(server.port(), tls));
      EXPECT_EQ(receipt.outcome, Outcome::kNotArrived) << receipt.reason << receipt.message;
    }
  }
}

TEST_P(ClientTlsTest, TrustsNobodyWhereTheFileOfAuthoritiesIsEmpty) {
  std::ofstream(File("empty"));
  // gRPC takes these for the system's, unless it has looked before.
  ::setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", File("authority.crt").c_str(), 1);
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = ""});
  ExpectRefused(*MakeSink(server.port(), {.ca_file = File("empty")}));
  ::unsetenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
}

TEST_P(ClientTlsTest, DoesNotAskAPersonForAPassword) {
  const TlsServer server(GetParam(), *tree_, {.certificate = "server", .client_ca = "authority"});
  const std::string locked = "openssl ec -aes128 -passout pass:secret -in " + File("client.key") +
                             " -out " + File("locked.key") + " 2>/dev/null";
  ASSERT_EQ(std::system(locked.c_str()), 0);
  // Where there is no terminal, the library would read the password from here, and wait for it.
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int input = ::dup(STDIN_FILENO);
  ::dup2(pipe[0], STDIN_FILENO);
  const auto sink = MakeSink(server.port(), {.ca_file = File("authority.crt"),
                                             .cert_file = File("client.crt"),
                                             .key_file = File("locked.key")});
  auto receipt = std::async(std::launch::async, [&] { return Deliver(*sink); });
  EXPECT_EQ(receipt.wait_for(kTestPatience), std::future_status::ready);
  ::close(pipe[1]);  // lets go who waits
  EXPECT_EQ(receipt.get().outcome, Outcome::kNotArrived);
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  ::close(pipe[0]);
}

TEST_P(ClientTlsTest, NoticesThatTheServerIsAnotherOne) {
  auto server = std::make_unique<TlsServer>(
      GetParam(), *tree_, ServerIdentity{.certificate = "server", .client_ca = ""});
  const int port = server->port();
  const auto sink = MakeSink(port, {.ca_file = File("authority.crt")});
  ExpectDelivered(*sink);
  server.reset();
  server = std::make_unique<TlsServer>(
      GetParam(), *tree_, ServerIdentity{.certificate = "impostor", .client_ca = ""}, port);
  // That its connection is dead it may learn only by using it.
  while (Deliver(*sink).reason == "connection_lost") {
  }
  ExpectRefused(*sink);
}

INSTANTIATE_TEST_SUITE_P(Both, ClientTlsTest, testing::Values(Protocol::kHttp, Protocol::kGrpc),
                         [](const auto& protocol) {
                           return protocol.param == Protocol::kHttp ? "Http" : "Grpc";
                         });

}  // namespace
}  // namespace pyrometer
