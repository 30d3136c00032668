// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pyrometer {

// Who may ask.
class Access {
 public:
  // "": nobody needs a token. The file is read again for each request, so that a rotated token
  // counts at once; while it is empty or cannot be read, nobody has the token.
  explicit Access(std::string bearer_token_file) : token_file_(std::move(bearer_token_file)) {}

  // Whether the value of an Authorization header shows the token: `Bearer TOKEN`, or `Basic` with
  // the token as the password of any user, which is how a browser can send one. Takes as long for
  // any wrong token.
  bool MayAsk(std::string_view authorization) const;

  // Why nobody can have the token; "": all is well.
  std::string Trouble() const;

  // Whether a page of another site may be behind a request to a loopback address: `host` is the
  // value of the Host header. Such a page reaches this server if its own name resolves to
  // 127.0.0.1, but its name is then in the header; an address or `localhost` is not a site's.
  // With a token that is no danger, as the page does not have it.
  bool MayBeForeign(std::string_view host) const;

 private:
  const std::string token_file_;
};

}  // namespace pyrometer
