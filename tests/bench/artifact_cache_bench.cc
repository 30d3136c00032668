// SPDX-License-Identifier: Apache-2.0
// Source lines of a large program: read from it, and from what was kept of it on disk. Beside
// ReadSourcesOf in micro_bench.cc, which is what it takes without a cache.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "base/stored_bytes.h"
#include "base/unique_fd.h"
#include "binary/segments.h"
#include "indexer/artifact_cache.h"
#include "indexer/in_process_indexer.h"

namespace pyrometer::bench {
namespace {

constexpr const char* kContainerd = "/usr/bin/containerd";

// A program's source lines in a cache of its own.
class CachedProgram {
 public:
  explicit CachedProgram(const char* path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {
    std::string name = "/var/tmp/pyrometer-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return;
    directory_ = name;
    auto cache = ArtifactCache::Open({.directory = directory_});
    const auto facts = indexer_.Inspect(file_.get());
    auto made = indexer_.Sources({.own = file_.get()}, {});
    if (!cache || !facts || !made || made->value.empty()) return;
    cache_ = *cache;
    made_ = *std::move(made);
    build_id_ = facts->build_id;
    begin_ = CodeBase(facts->segments).value();
    if (build_id_.empty()) build_id_ = BuildId(std::as_bytes(std::span("none")));
  }
  ~CachedProgram() {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }
  CachedProgram(const CachedProgram&) = delete;
  CachedProgram& operator=(const CachedProgram&) = delete;

  void Store() { cache_->StoreSources(build_id_, made_.reading, made_.value); }
  std::optional<Made<SourceMap>> Find() {
    return cache_->FindSources(build_id_, [this](const Reading& reading) {
      return indexer_.Repeats({.own = file_.get()}, reading);
    });
  }
  std::string FileName() const {
    return std::filesystem::directory_iterator(directory_ + "/symbols")->path();
  }
  bool ok() const { return cache_ != nullptr; }
  uint64_t begin() const { return begin_; }
  const Made<SourceMap>& made() const { return made_; }

 private:
  const UniqueFd file_;
  std::string directory_;
  InProcessIndexer indexer_;
  std::shared_ptr<ArtifactCache> cache_;
  Made<SourceMap> made_;
  BuildId build_id_;
  uint64_t begin_ = 0;
};

// What the cache would have in the place of reading a file: for the comparison only, see
// CachedSources.
class MappedTail : public StoredBytes {
 public:
  MappedTail(const std::string& path, uint64_t size) : size_(size) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat about {};
    if (::fstat(file.get(), &about) != 0) std::abort();
    mapped_ = static_cast<size_t>(about.st_size);
    memory_ = ::mmap(nullptr, mapped_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~MappedTail() override { ::munmap(memory_, mapped_); }
  MappedTail(const MappedTail&) = delete;
  MappedTail& operator=(const MappedTail&) = delete;

  bool Read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) return false;
    const auto* const bytes = static_cast<const std::byte*>(memory_) + (mapped_ - size_);
    std::copy_n(bytes + offset, out.size(), out.begin());
    return true;
  }
  uint64_t size() const override { return size_; }
  size_t in_memory() const override { return 0; }
  uint64_t spilled() const override { return 0; }

 private:
  const uint64_t size_;
  size_t mapped_ = 0;
  void* memory_ = nullptr;
};

constexpr const char* kNone = "there is no such file here, or it tells no lines";

void StoreSources(benchmark::State& state) {
  CachedProgram program(kContainerd);
  if (!program.ok()) return state.SkipWithError(kNone);
  for (auto _ : state) program.Store();
  state.counters["bytes"] = static_cast<double>(program.made().value.stored()->size());
}
BENCHMARK(StoreSources)->Unit(benchmark::kMillisecond);

// Until the first address has its names.
void FindSourcesInCache(benchmark::State& state) {
  CachedProgram program(kContainerd);
  if (!program.ok()) return state.SkipWithError(kNone);
  program.Store();
  for (auto _ : state) {
    const std::optional<Made<SourceMap>> found = program.Find();
    if (!found) return state.SkipWithError("not found");
    benchmark::DoNotOptimize(found->value.Find(ElfAddress(program.begin() + (1 << 20))));
  }
  uint64_t read = 0;
  for (const Reading::Piece& piece : program.made().reading.pieces) read += piece.size;
  state.counters["compared"] = static_cast<double>(read);
  state.counters["pieces"] = static_cast<double>(program.made().reading.pieces.size());
}
BENCHMARK(FindSourcesInCache)->Unit(benchmark::kMillisecond);

void LookUp(benchmark::State& state, const SourceMap& map, uint64_t begin) {
  std::mt19937 random(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(map.Find(ElfAddress(begin + random() % (8 << 20))));
  }
}

void LookUpCachedAddress(benchmark::State& state) {
  CachedProgram program(kContainerd);
  if (!program.ok()) return state.SkipWithError(kNone);
  program.Store();
  const std::optional<Made<SourceMap>> found = program.Find();
  if (!found) return state.SkipWithError("not found");
  LookUp(state, found->value, program.begin());
}
BENCHMARK(LookUpCachedAddress);

void LookUpMappedAddress(benchmark::State& state) {
  CachedProgram program(kContainerd);
  if (!program.ok()) return state.SkipWithError(kNone);
  program.Store();
  const auto map = SourceMap::From(std::make_shared<const MappedTail>(
      program.FileName(), program.made().value.stored()->size()));
  if (!map) return state.SkipWithError("not a map");
  LookUp(state, *map, program.begin());
}
BENCHMARK(LookUpMappedAddress);

}  // namespace
}  // namespace pyrometer::bench
