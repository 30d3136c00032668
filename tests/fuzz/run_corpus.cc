// SPDX-License-Identifier: Apache-2.0
// In place of libFuzzer: one run with each file of a directory, if it is there, and with each part
// of a file that is cut short; and with short inputs of equal bytes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kCuts = 64;

size_t Run(const std::vector<uint8_t>& input) {
  // On a heap block of just this size, beyond which a sanitizer sees reads.
  for (size_t cut = 1; cut <= kCuts; ++cut) {
    const std::vector<uint8_t> part(
        input.begin(), input.begin() + static_cast<ptrdiff_t>(input.size() * cut / kCuts));
    LLVMFuzzerTestOneInput(part.data(), part.size());
  }
  return kCuts;
}

}  // namespace

int main(int argc, char** argv) {
  size_t runs = 0;
  for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
    runs += Run(std::vector<uint8_t>(256, static_cast<uint8_t>(value)));
  }
  std::error_code none;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i], none)) {
      std::ifstream in(file.path(), std::ios::binary);
      runs += Run(std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {}));
    }
  }
  std::printf("%zu runs\n", runs);
  return 0;
}
