// SPDX-License-Identifier: Apache-2.0
// Format: src/runtime/symtab.go of the Go distribution, moduledata, 1.18 to 1.26.
#include "debuginfo/go_module.h"

#include <array>
#include <cstring>

namespace pyrometer {
namespace {

// Numbers of words.
constexpr size_t kNames = 1;  // slices: where, how many, room for how many
constexpr size_t kUnitFiles = 4;
constexpr size_t kFiles = 7;
constexpr size_t kPcValues = 10;
constexpr size_t kFunctionRecords = 13;
constexpr size_t kFunctionTable = 16;
constexpr size_t kMinPc = 20;
constexpr size_t kMaxPc = 21;
constexpr size_t kText = 22;
constexpr size_t kGoFunc118 = 38;
constexpr size_t kGoFunc120 = 40;
// Where later versions may have it.
constexpr size_t kFirstGoFunc = 32;
constexpr size_t kWords = 48;

// Addresses of the table may be elsewhere as well, such as in other variables of the runtime.
constexpr size_t kMostCandidates = 16;

using Words = std::array<uint64_t, kWords>;

bool IsOf(const Words& words, const GoTable& table, uint64_t address) {
  const GoHeader& header = table.header();
  const std::pair<size_t, uint64_t> parts[] = {
      {kNames, header.names},
      {kUnitFiles, header.unit_files},
      {kFiles, header.files},
      {kPcValues, header.pc_values},
      {kFunctionRecords, header.function_records},
      {kFunctionTable, header.function_table},
  };
  for (const auto& [word, offset] : parts) {
    if (words[word] != address + offset || words[word + 1] != words[word + 2]) return false;
  }
  return words[kFunctionTable + 1] == header.functions + 1;
}

// Whether functions lie where the table says.
bool HasBounds(const Words& words, const GoTable& table) {
  const auto first = table.RawEntry(0);
  const auto end = table.RawEntry(table.header().functions);
  return first && end && words[kText] + *first == words[kMinPc] &&
         words[kText] + *end == words[kMaxPc];
}

std::vector<uint64_t> Bases(const Words& words, const GoImage& image, GoHeader::Format format) {
  const size_t likeliest = format == GoHeader::Format::kGo118 ? kGoFunc118 : kGoFunc120;
  std::vector<uint64_t> bases = {words[likeliest]};
  for (size_t i = kFirstGoFunc; i < kWords; ++i) {
    if (i != likeliest && image.SizeAt(words[i]) > 0) bases.push_back(words[i]);
  }
  return bases;
}

}  // namespace

Result<GoModule> FindGoModule(const GoImage& image, const GoTable& table, uint64_t table_address) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> candidates,
                   image.FindPointers(table_address, kMostCandidates));
  for (const uint64_t candidate : candidates) {
    const Result<std::vector<std::byte>> bytes = image.Read(candidate, sizeof(Words));
    if (!bytes) continue;
    Words words;
    std::memcpy(words.data(), bytes->data(), sizeof(words));
    if (!IsOf(words, table, table_address) || !HasBounds(words, table)) continue;
    return GoModule{.text = words[kText],
                    .func_data_bases = Bases(words, image, table.header().format)};
  }
  return Fail(ErrorCode::kNotFound, "no module data of the Go table at {:#x}", table_address);
}

}  // namespace pyrometer
