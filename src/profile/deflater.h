// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace pyrometer {

// Compresses a stream into a string piece by piece: no more of the plain form exists than
// kSmallStream bytes. A stream that is no longer than these is packed by libdeflate, in less than
// half of zlib's time, which profiles of ten seconds are worth since there are hundreds of them;
// libdeflate wants a stream whole, so others are zlib's.
class Deflater {
 public:
  enum class Format { kGzip, kZlib };  // RFC 1952; RFC 1950
  static constexpr size_t kSmallStream = size_t{64} << 10;

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

  Format format_;
  std::string small_;               // what there is of a stream that may be a small one
  std::unique_ptr<Stream> stream_;  // zlib's, for one that is not
  std::string out_;
};

}  // namespace pyrometer
