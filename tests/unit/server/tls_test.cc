// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/server/server_fixture.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string Written(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// A self-signed certificate and its key, in PEM.
struct Identity {
  explicit Identity(const char* name) {
    EVP_PKEY* pair = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(x509, X509_get_subject_name(x509));
    X509_sign(x509, pair, EVP_sha256());
    BIO* out = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(out, x509);
    cert = Written(out);
    out = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(out, pair, nullptr, nullptr, 0, nullptr, nullptr);
    key = Written(out);
    X509_free(x509);
    EVP_PKEY_free(pair);
  }
  std::string cert;
  std::string key;
};

class TlsTest : public ServerTest {
 protected:
  void Write(const Identity& identity) {
    tree_.File("cert.pem", identity.cert);
    tree_.File("key.pem", identity.key);
  }
  HttpServerOptions Options() const {
    return {
        .clock = clock_, .cert_file = tree_.Path("cert.pem"), .key_file = tree_.Path("key.pem")};
  }

  // The name in the server's certificate and its answer to one request; "" if there is none.
  std::pair<std::string, std::string> AskOverTls(const std::string& target, int newest = 0) {
    TestClient client = Connect();
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_max_proto_version(context.get(), newest);
    const UniqueSsl ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), client.socket());
    if (SSL_connect(ssl.get()) != 1) return {};
    std::array<char, 100> name{};
    X509* cert = SSL_get1_peer_certificate(ssl.get());
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    X509_free(cert);
    const std::string request =
        "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
    std::string answer;
    std::array<char, 4096> bytes{};
    for (int got = 0; (got = SSL_read(ssl.get(), bytes.data(), bytes.size())) > 0;) {
      answer.append(bytes.data(), static_cast<size_t>(got));
    }
    return {name.data(), answer};
  }

  TemporaryTree tree_;
};

TEST_F(TlsTest, EncryptsAndShowsItsCertificate) {
  Write(Identity("first"));
  agent_.profile.assign(size_t{4} << 20, 'x');
  Start(Options());
  const auto [name, answer] = AskOverTls("/debug/pprof/profile");
  EXPECT_EQ(name, "first");
  EXPECT_THAT(answer.substr(0, 30), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_GT(answer.size(), size_t{4} << 20);
}

TEST_F(TlsTest, ARenewedCertificateIsUsedAtOnce) {
  Write(Identity("first"));
  Start(Options());
  Write(Identity("second"));
  EXPECT_EQ(AskOverTls("/healthz").first, "second");
}

TEST_F(TlsTest, ABrokenRenewalKeepsTheOldOneAndSaysSo) {
  Write(Identity("first"));
  Start(Options());
  const Identity second("second");
  tree_.File("cert.pem", second.cert);  // and the old key
  EXPECT_EQ(AskOverTls("/healthz").first, "first");
  EXPECT_THAT(server_->Troubles(), testing::ElementsAre(HasSubstr("cert.pem")));
  EXPECT_THAT(AskOverTls("/").second, HasSubstr("not the certificate"));  // a warning on the page
  tree_.File("key.pem", second.key);
  EXPECT_EQ(AskOverTls("/healthz").first, "second");
  EXPECT_THAT(server_->Troubles(), IsEmpty());
}

TEST_F(TlsTest, RefusesOldVersionsAndPlainText) {
  Write(Identity("first"));
  Start(Options());
  EXPECT_EQ(AskOverTls("/healthz", TLS1_1_VERSION).second, "");
  EXPECT_EQ(Get("/healthz").status, 0);
  EXPECT_THAT(AskOverTls("/healthz").second, HasSubstr("\r\n\r\nok\n"));
}

TEST_F(TlsTest, AClientThatGoesAwayEndsItsProfile) {
  Write(Identity("first"));
  agent_.HoldProfiles();
  Start(Options());
  {
    TestClient client = Connect();
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    const UniqueSsl ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), client.socket());
    ASSERT_EQ(SSL_connect(ssl.get()), 1);
    constexpr std::string_view kRequest =
        "GET /debug/pprof/profile HTTP/1.1\r\nHost: localhost\r\n\r\n";
    SSL_write(ssl.get(), kRequest.data(), static_cast<int>(kRequest.size()));
    ASSERT_TRUE(agent_.AwaitStarted(1));
  }
  EXPECT_TRUE(agent_.AwaitStopped(1));
}

TEST_F(TlsTest, DoesNotStartWithoutAPair) {
  tree_.File("cert.pem", Identity("one").cert);
  tree_.File("key.pem", Identity("two").key);
  HttpServerOptions options = Options();
  options.listen = "127.0.0.1:0";
  const auto mixed = HttpServer::Start(agent_, options);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(mixed.error().message(), HasSubstr("cert.pem"));
  options.key_file = "";
  EXPECT_FALSE(HttpServer::Start(agent_, options));
  options.key_file = tree_.Path("missing.pem");
  EXPECT_FALSE(HttpServer::Start(agent_, options));
}

}  // namespace
}  // namespace pyrometer
