// SPDX-License-Identifier: Apache-2.0
// Certificates made for a test by the openssl program.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {

// An authority, NAME.crt and NAME.key in `tree`.
inline void MakeAuthority(const TemporaryTree& tree, const std::string& name) {
  const std::string path = tree.Path(name);
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=" +
      name + " -keyout " + path + ".key -out " + path + ".crt 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

// A certificate NAME.crt with NAME.key, signed by `authority`, for `alternative`: "DNS:localhost".
inline void MakeCertificate(const TemporaryTree& tree, const std::string& authority,
                            const std::string& name, const std::string& alternative) {
  const std::string path = tree.Path(name);
  const std::string ca = tree.Path(authority);
  const std::string command =
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + name +
      " -keyout " + path + ".key -out " + path +
      ".csr 2>/dev/null && printf 'subjectAltName=" + alternative + "' >" + path +
      ".ext && openssl x509 -req -days 2 -in " + path + ".csr -CA " + ca + ".crt -CAkey " + ca +
      ".key -CAcreateserial -extfile " + path + ".ext -out " + path + ".crt 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

inline std::string ContentOf(const std::string& path) {
  const Result<std::string> content = ReadFile(path);
  EXPECT_TRUE(content.has_value()) << path;
  return content.value_or("");
}

}  // namespace pyrometer
