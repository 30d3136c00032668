// SPDX-License-Identifier: Apache-2.0
// What the kernel books for the maps, beside what is planned for them.
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

struct Booked {
  uint64_t bytes = 0;
  uint64_t of_rings = 0;  // the part that is ring buffers
};

// The map behind a descriptor of ours, and what the kernel books for it.
std::optional<std::pair<uint32_t, Booked>> MapBehind(const std::filesystem::path& fdinfo) {
  std::ifstream file(fdinfo);
  std::optional<uint32_t> id;
  uint32_t type = 0;
  uint64_t bytes = 0;
  for (std::string name; file >> name;) {
    if (name == "map_id:") file >> id.emplace();
    if (name == "map_type:") file >> type;
    if (name == "memlock:") file >> bytes;
  }
  if (!id) return std::nullopt;
  return std::pair(*id, Booked{bytes, type == BPF_MAP_TYPE_RINGBUF ? bytes : 0});
}

Booked AllMaps() {
  std::map<uint32_t, Booked> maps;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    if (const auto found = MapBehind(entry.path())) maps.insert(*found);
  }
  Booked sum;
  for (const auto& [id, booked] : maps) {
    sum.bytes += booked.bytes;
    sum.of_rings += booked.of_rings;
  }
  return sum;
}

TEST_F(SamplerLive, TakesTheMemoryThatIsPlannedForIt) {
  MapSizes large{.processes = 65536, .mapping_parts = 8, .cold_bytes = 16 << 20};
  large = large.WithWindows(Hertz{99}, 256, std::chrono::seconds(10));
  for (const MapSizes& sizes : {MapSizes(), large}) {
    const Booked before = AllMaps();
    const std::unique_ptr<Sampler> sampler = LoadOrFail({.sizes = sizes});
    ASSERT_TRUE(sampler);
    const uint64_t planned = sizes.Bytes(Sampler::PossibleCpus());
    const Booked after = AllMaps();
    const uint64_t taken = after.bytes - before.bytes;
    EXPECT_LE(taken, planned);
    // Linux 5.11 to 6.3 books keys and values only, neither heads of elements nor ring buffers.
    const bool is_exact = after.of_rings - before.of_rings >= sizes.cold_bytes;
    EXPECT_GT(taken, is_exact ? planned / 100 * 98 : 0);
    RecordProperty("bytes", std::to_string(taken));
  }
}

}  // namespace
}  // namespace pyrometer
