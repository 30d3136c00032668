// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace pyrometer {

// Compresses a stream into a string piece by piece: the plain form never exists as a whole.
class Deflater {
 public:
  enum class Format { kGzip, kZlib };  // RFC 1952; RFC 1950

  explicit Deflater(Format format);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void Append(std::string_view bytes);

  // Returns the whole stream. Nothing may be appended afterwards.
  std::string Finish() &&;

 private:
  struct Stream;
  void Run(std::string_view bytes, int flush);

  std::unique_ptr<Stream> stream_;
  std::string out_;
};

}  // namespace pyrometer
