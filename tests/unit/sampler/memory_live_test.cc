// SPDX-License-Identifier: Apache-2.0
// What the kernel books for the maps, beside what is planned for them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

// The map behind a descriptor of ours, and the bytes that the kernel books for it.
std::optional<std::pair<uint32_t, uint64_t>> MapBehind(const std::filesystem::path& fdinfo) {
  std::ifstream file(fdinfo);
  std::optional<uint32_t> id;
  uint64_t bytes = 0;
  for (std::string name; file >> name;) {
    if (name == "map_id:") file >> id.emplace();
    if (name == "memlock:") file >> bytes;
  }
  if (!id) return std::nullopt;
  return std::pair(*id, bytes);
}

uint64_t BytesOfAllMaps() {
  std::map<uint32_t, uint64_t> maps;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    if (const auto found = MapBehind(entry.path())) maps.insert(*found);
  }
  uint64_t sum = 0;
  for (const auto& [id, bytes] : maps) sum += bytes;
  return sum;
}

TEST_F(SamplerLive, TakesTheMemoryThatIsPlannedForIt) {
  MapSizes large{.processes = 65536, .mapping_parts = 8, .cold_bytes = 16 << 20};
  large = large.WithWindows(Hertz{99}, 256, std::chrono::seconds(10));
  for (const MapSizes& sizes : {MapSizes(), large}) {
    const uint64_t before = BytesOfAllMaps();
    const std::unique_ptr<Sampler> sampler = LoadOrFail({.sizes = sizes});
    ASSERT_TRUE(sampler);
    const uint64_t planned = sizes.Bytes(Sampler::PossibleCpus());
    const uint64_t taken = BytesOfAllMaps() - before;
    EXPECT_LE(taken, planned);
    EXPECT_GT(taken, planned / 100 * 98);
    RecordProperty("bytes", std::to_string(taken));
  }
}

}  // namespace
}  // namespace pyrometer
