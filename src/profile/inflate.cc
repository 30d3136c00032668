// SPDX-License-Identifier: Apache-2.0
#include "profile/inflate.h"

#define ZLIB_CONST  // next_in is not written
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace pyrometer {
namespace {

struct Stream {
  z_stream z{};
  ~Stream() { inflateEnd(&z); }
};

}  // namespace

Result<std::string> Inflated(std::string_view packed, size_t limit) {
  constexpr int kWindowBits = 15;
  constexpr int kAnyWrapper = 32;
  Stream stream;
  z_stream& z = stream.z;
  if (packed.size() > std::numeric_limits<uInt>::max()) {
    return Fail(ErrorCode::kExhausted, "compressed data of {} bytes", packed.size());
  }
  if (inflateInit2(&z, kWindowBits + kAnyWrapper) != Z_OK) {
    return Fail(ErrorCode::kExhausted, "out of memory");
  }
  z.next_in = reinterpret_cast<const Bytef*>(packed.data());
  z.avail_in = static_cast<uInt>(packed.size());
  std::string plain;
  std::array<char, size_t{16} << 10> buffer;
  int status = Z_OK;
  while (status == Z_OK) {
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&z, Z_NO_FLUSH);
    plain.append(buffer.data(), buffer.size() - z.avail_out);
    if (plain.size() > limit) {
      return Fail(ErrorCode::kExhausted, "compressed data that holds more than {} bytes", limit);
    }
  }
  if (status != Z_STREAM_END || z.avail_in != 0) {
    return Fail(ErrorCode::kMalformed, "no whole gzip stream");
  }
  return plain;
}

}  // namespace pyrometer
