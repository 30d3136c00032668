// SPDX-License-Identifier: Apache-2.0
// What processes choose of the texts that /proc shows of them: paths in maps, names in stat and
// status, and whole environments.
#include <algorithm>
#include <string_view>

#include "metadata/otel_environment.h"
#include "process/proc_maps.h"
#include "process/proc_text.h"
#include "tests/fuzz/fuzz_file.h"

namespace pyrometer {
namespace {

ProcMaps Parse(std::string_view text, size_t piece) {
  ProcMapsParser parser({.files = 16, .anonymous = 16});
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (!parser.Add(text.substr(0, piece))) break;
  }
  return std::move(parser).Finish();
}

bool IsSame(const ProcMapping& a, const ProcMapping& b) {
  return a.range.start == b.range.start && a.range.end == b.range.end &&
         a.range.offset == b.range.offset && a.file.path == b.file.path && a.line_end == b.line_end;
}

}  // namespace
}  // namespace pyrometer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const ProcMaps whole = Parse(text, std::max<size_t>(size, 1));
  for (const ProcMapping& mapping : whole.mappings) {
    Require(mapping.range.start < mapping.range.end);
    Require(mapping.line_end > mapping.range.start && mapping.line_end <= mapping.range.end);
  }
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}}) {
    Require(std::ranges::equal(whole.mappings, Parse(text, piece).mappings, IsSame));
  }
  if (const Result<ProcStat> stat = ParseProcStat(text)) Require(stat->comm.size() < size);
  static_cast<void>(ParseProcStatus(text));
  Require(OtelServiceName(text).size() <= size);
  return 0;
}
