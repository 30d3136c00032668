// SPDX-License-Identifier: Apache-2.0
#include "base/file_hash.h"

// The newer functions look for configuration and providers on disk when they are first called,
// which ends a process in the sandbox; these only compute.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>

namespace pyrometer {

FileHash HashOf(std::span<const std::byte> head, std::span<const std::byte> tail, uint64_t size) {
  std::array<std::byte, sizeof(size)> big_endian{};
  for (std::byte& byte : big_endian) {
    byte = static_cast<std::byte>(size >> 56);
    size <<= 8;
  }
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const std::span<const std::byte> part :
       {head, tail, std::span<const std::byte>(big_endian)}) {
    SHA256_Update(&context, part.data(), part.size());
  }
  std::array<std::byte, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return FileHash(std::span(digest).first<FileHash::kSize>());
}

}  // namespace pyrometer
