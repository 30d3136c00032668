// SPDX-License-Identifier: Apache-2.0
#include "profile/deflater.h"

#define ZLIB_CONST  // next_in is not written
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

namespace pyrometer {

struct Deflater::Stream {
  z_stream z{};
  ~Stream() { deflateEnd(&z); }
};

Deflater::Deflater(Format format) : stream_(std::make_unique<Stream>()) {
  constexpr int kWindowBits = 15;
  constexpr int kGzipWrapper = 16;
  constexpr int kMemoryLevel = 8;
  const int window = format == Format::kGzip ? kWindowBits + kGzipWrapper : kWindowBits;
  // With these constant parameters it can only fail for want of memory.
  if (deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

Deflater::~Deflater() = default;

void Deflater::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, std::numeric_limits<uInt>::max());
    Run(piece, Z_NO_FLUSH);
    bytes.remove_prefix(piece.size());
  }
}

std::string Deflater::Finish() && {
  Run({}, Z_FINISH);
  return std::move(out_);
}

void Deflater::Run(std::string_view bytes, int flush) {
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<const Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  std::array<char, size_t{16} << 10> buffer;
  do {
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = static_cast<uInt>(buffer.size());
    deflate(&z, flush);
    out_.append(buffer.data(), buffer.size() - z.avail_out);
  } while (z.avail_out == 0);
}

}  // namespace pyrometer
