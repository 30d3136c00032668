// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace pyrometer {

// An authority of a test's own with a certificate for 127.0.0.1 and one for another host, made by
// openssl(1) in a directory of the test.
class TestCertificates {
 public:
  TestCertificates(std::string directory, const std::string& name)
      : base_(std::move(directory) + "/" + name) {
    Run(fmt::format("req -x509 {} -subj /CN={} -keyout {}.key -out {}", kKey, name, base_, ca()));
    Sign("IP:127.0.0.1", cert(), key());
    Sign("DNS:elsewhere.test", other_cert(), other_key());
  }

  std::string ca() const { return base_ + ".pem"; }
  std::string cert() const { return base_ + "-host.pem"; }
  std::string key() const { return base_ + "-host.key"; }
  std::string other_cert() const { return base_ + "-other.pem"; }
  std::string other_key() const { return base_ + "-other.key"; }

 private:
  static constexpr const char* kKey =
      "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";

  void Sign(const std::string& host, const std::string& cert, const std::string& key) const {
    Run(
        fmt::format("req -x509 {} -CA {} -CAkey {}.key -subj /CN=server -addext subjectAltName={} "
                    "-addext basicConstraints=CA:FALSE -keyout {} -out {}",
                    kKey, ca(), base_, host, key, cert));
  }
  static void Run(const std::string& command) {
    ASSERT_EQ(std::system(("openssl " + command + " >/dev/null 2>&1").c_str()), 0) << command;
  }

  const std::string base_;
};

}  // namespace pyrometer
