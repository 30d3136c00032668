// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/spilled_bytes.h"
#include "indexer/indexer.h"
#include "indexer/reading.h"
#include "symbolize/source_map_writer.h"

namespace pyrometer {

inline constexpr uint64_t kMadeUpBase = 0x1000;

// A map in which all code belongs to a function of this name.
inline SourceMap MapWith(std::string_view name) {
  SourceMapWriter writer((ElfAddress(kMadeUpBase)));
  const std::array ranges = {SourceSink::Range{.begin = kMadeUpBase, .end = kMadeUpBase + 64}};
  writer.AddScope({.depth = 0,
                   .name = writer.AddName(name),
                   .call_file = SourceSink::kUnknown,
                   .call_line = 0,
                   .ranges = ranges});
  auto bytes =
      std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{1} << 20});
  EXPECT_TRUE(std::move(writer).Write(*bytes));
  return *SourceMap::From(std::move(bytes));
}

// "-" if there is none.
inline std::string NameIn(const SourceMap& map) {
  const std::vector<SourceFrame> frames = map.Find(ElfAddress(kMadeUpBase + 1));
  return frames.empty() ? "-" : frames.front().name;
}

inline UniqueFd FileWith(std::string_view content) {
  UniqueFd fd(::memfd_create("program", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), content).has_value());
  return fd;
}

// The map that is made of such a file: its function is called like the content, or as much of it as
// a name has room for.
inline Made<SourceMap> ReadMadeUpSources(int fd) {
  constexpr uint64_t kMostRead = 4096;
  ReadingRecorder recorder(KeyedDigest::RandomKey());
  const auto file = recorder.Watch(*FileBytes(fd));
  std::string content(std::min(file->size(), kMostRead), '\0');
  EXPECT_TRUE(file->Read(0, std::as_writable_bytes(std::span(content))).has_value());
  return {.value = MapWith(content), .reading = std::move(recorder).Finish()};
}

}  // namespace pyrometer
