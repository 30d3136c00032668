// SPDX-License-Identifier: Apache-2.0
#include "server/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <utility>

#include "base/file.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxPemBytes = size_t{1} << 20;

using UniqueBio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using UniqueCert = std::unique_ptr<X509, decltype(&X509_free)>;
using UniqueKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Error TlsError(std::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return Fail(ErrorCode::kInvalid, "{}: {}", what, text.data());
}

UniqueBio MemoryBio(const std::string& bytes) {
  return {BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), &BIO_free_all};
}

// Asks nobody for a pass phrase, as OpenSSL would at the terminal.
int NoPassPhrase(char* /*out*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

Result<void> UseCertificates(SSL_CTX* context, const std::string& pem) {
  const UniqueBio bio = MemoryBio(pem);
  const UniqueCert first(PEM_read_bio_X509(bio.get(), nullptr, &NoPassPhrase, nullptr), &X509_free);
  if (!first || SSL_CTX_use_certificate(context, first.get()) != 1) {
    return TlsError("no certificate in PEM format");
  }
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, &NoPassPhrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    return TlsError("the certificate's chain");
  }
  ERR_clear_error();  // the end of the file
  return {};
}

Result<void> UseKey(SSL_CTX* context, const std::string& pem) {
  const UniqueBio bio = MemoryBio(pem);
  const UniqueKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassPhrase, nullptr),
                      &EVP_PKEY_free);
  if (!key) return TlsError("no private key in PEM format without a pass phrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return TlsError("not the certificate's key");
  }
  return {};
}

Result<std::shared_ptr<SSL_CTX>> MakeContext(const std::string& cert, const std::string& key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!context) return TlsError("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  RETURN_IF_ERROR(UseCertificates(context.get(), cert));
  RETURN_IF_ERROR(UseKey(context.get(), key));
  return context;
}

}  // namespace

void SslFree::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::Load(std::string cert_file,
                                                       std::string key_file) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(std::move(cert_file), std::move(key_file)));
  const std::lock_guard lock(identity->mutex_);
  RETURN_IF_ERROR(identity->Refresh());
  return identity;
}

Result<UniqueSsl> TlsIdentity::Accept(int socket) {
  std::shared_ptr<SSL_CTX> context;
  {
    const std::lock_guard lock(mutex_);
    const Result<void> fresh = Refresh();
    trouble_ = fresh ? "" : fresh.error().message();
    context = context_;
  }
  UniqueSsl ssl(SSL_new(context.get()));
  if (!ssl || SSL_set_fd(ssl.get(), socket) != 1) return TlsError("TLS");
  SSL_set_accept_state(ssl.get());
  return ssl;
}

std::string TlsIdentity::Trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

Result<void> TlsIdentity::Refresh() {
  Files files;
  ASSIGN_OR_RETURN(files.cert, ReadFile(cert_file_, kMaxPemBytes));
  ASSIGN_OR_RETURN(files.key, ReadFile(key_file_, kMaxPemBytes));
  if (context_ && files == files_) return {};
  Result<std::shared_ptr<SSL_CTX>> context = MakeContext(files.cert, files.key);
  if (!context) {
    return std::move(context).error().With(
        fmt::format("the server's certificate {} with key {}", cert_file_, key_file_));
  }
  context_ = *std::move(context);
  files_ = std::move(files);
  return {};
}

}  // namespace pyrometer
