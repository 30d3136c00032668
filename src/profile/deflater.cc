// SPDX-License-Identifier: Apache-2.0
#include "profile/deflater.h"

#include <libdeflate.h>
#define ZLIB_CONST  // next_in is not written
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

namespace pyrometer {

struct Deflater::Stream {
  explicit Stream(Format format) {
    constexpr int kWindowBits = 15;
    constexpr int kGzipWrapper = 16;
    constexpr int kMemoryLevel = 8;
    const int window = format == Format::kGzip ? kWindowBits + kGzipWrapper : kWindowBits;
    // With these constant parameters it can only fail for want of memory.
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Stream() { deflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  z_stream z{};
};

namespace {

using Compressor = std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)>;

// A compressor is 0.7 MB: making one for each profile would cost more than what it is for.
libdeflate_compressor* OwnCompressor() {
  constexpr int kLevel = 6;  // zlib's default too
  thread_local const Compressor compressor(libdeflate_alloc_compressor(kLevel),
                                           &libdeflate_free_compressor);
  if (compressor == nullptr) throw std::bad_alloc();
  return compressor.get();
}

std::string DeflateSmall(Deflater::Format format, std::string_view plain) {
  libdeflate_compressor* const compressor = OwnCompressor();
  const bool gzip = format == Deflater::Format::kGzip;
  const auto bound = gzip ? libdeflate_gzip_compress_bound : libdeflate_zlib_compress_bound;
  const auto compress = gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress;
  std::string out(bound(compressor, plain.size()), '\0');
  out.resize(compress(compressor, plain.data(), plain.size(), out.data(), out.size()));
  out.shrink_to_fit();  // it may wait for a server
  return out;
}

}  // namespace

Deflater::Deflater(Format format) : format_(format) {}

Deflater::~Deflater() = default;

void Deflater::Append(std::string_view bytes) {
  if (stream_ == nullptr) {
    if (small_.size() + bytes.size() <= kSmallStream) {
      small_ += bytes;
      return;
    }
    stream_ = std::make_unique<Stream>(format_);
    Run(std::exchange(small_, {}), Z_NO_FLUSH);
  }
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, std::numeric_limits<uInt>::max());
    Run(piece, Z_NO_FLUSH);
    bytes.remove_prefix(piece.size());
  }
}

std::string Deflater::Finish() && {
  if (stream_ == nullptr) return DeflateSmall(format_, small_);
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
