// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "pyrometer/result.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace pyrometer {

struct SslFree {
  void operator()(SSL* ssl) const;
};
using UniqueSsl = std::unique_ptr<SSL, SslFree>;

// The server's certificate and key. Both files are read again for each connection, so that a
// renewed certificate is used at once; if the new ones are no pair (yet), the old ones stay in use.
// Thread-safe.
class TlsIdentity {
 public:
  // PEM files; a chain's first certificate is the server's. Errors: those of reading them, and
  // kInvalid if they are no certificate and its key.
  static Result<std::unique_ptr<TlsIdentity>> Load(std::string cert_file, std::string key_file);

  // The server's side of a connection over `socket`, before the handshake. TLS 1.2 or newer.
  Result<UniqueSsl> Accept(int socket);

  // Why the files as they are now are not in use; "": they are.
  std::string Trouble() const;

 private:
  struct Files {
    std::string cert;
    std::string key;
    bool operator==(const Files&) const = default;
  };

  TlsIdentity(std::string cert_file, std::string key_file)
      : cert_file_(std::move(cert_file)), key_file_(std::move(key_file)) {}

  Result<void> Refresh();  // REQUIRES: mutex_ is held

  const std::string cert_file_;
  const std::string key_file_;
  mutable std::mutex mutex_;
  Files files_;  // of context_
  std::shared_ptr<SSL_CTX> context_;
  std::string trouble_;
};

}  // namespace pyrometer
