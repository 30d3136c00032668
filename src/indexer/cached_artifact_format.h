// SPDX-License-Identifier: Apache-2.0
// A file of the cache, in this order, with nothing between or behind; numbers are little-endian:
//
//   offset  size
//        0     8  magic: "pyrocac1". Its last character is the version of this format, and goes up
//                 with every change of what follows, up to the artifact.
//        8     4  kind of artifact; 1: a SourceMap
//       12     4  size of the build id, at most 20
//       16    20  build id of the file that the artifact was made of; the rest is zeros
//       36    20  build id of the program that made it; the rest is zeros
//       56    16  key of the digests, this one's and the reading's: low and high word
//       72     8  R: size of the reading
//       80     8  A: size of the artifact
//       88    16  digest of the artifact (KeyedDigest): low and high word
//      104    16  digest of the first 104 bytes and the reading
//      120     R  the reading: see Encode(Reading) in artifact_codec.h
//    120+R     A  the artifact; of a SourceMap see source_map_format.h
//
// What is read by another program than it was made by is never used, so nobody has to remember that
// what comes out of the same bytes has changed: each build of the program makes its own.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/keyed_digest.h"
#include "pyrometer/ids.h"

namespace pyrometer {

static_assert(std::endian::native == std::endian::little, "the header is read as it lies");

inline constexpr std::array<char, 8> kCachedArtifactMagic = {'p', 'y', 'r', 'o',
                                                             'c', 'a', 'c', '1'};
inline constexpr uint32_t kCachedSources = 1;

struct CachedArtifactHeader {
  std::array<char, 8> magic = kCachedArtifactMagic;
  uint32_t kind = kCachedSources;
  uint32_t build_id_size = 0;
  std::array<std::byte, BuildId::kMaxSize> build_id{};
  std::array<std::byte, BuildId::kMaxSize> maker{};
  KeyedDigest::Key key{};
  uint64_t reading_size = 0;
  uint64_t artifact_size = 0;
  Digest artifact{};
  Digest head{};
};
static_assert(sizeof(CachedArtifactHeader) == 120);
static_assert(offsetof(CachedArtifactHeader, head) == 104);

// One with as many pieces as there may be has 0.4 MB.
inline constexpr uint64_t kMostOfCachedReading = uint64_t{1} << 20;

}  // namespace pyrometer
