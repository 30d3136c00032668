// SPDX-License-Identifier: Apache-2.0
// A jitdump that is read in two parts, of which the first byte tells the sizes. What is known of
// every address near its code is the same as if it had been read at once.
#include "base/printable.h"
#include "symbolize/jit_dump.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace pyrometer;

constexpr MonotonicTime kNow(1000);
constexpr size_t kRoom = size_t{1} << 20;

void CheckPlace(const JitDump::Place& place) {
  Require(place.function.size() <= JitCode::kMaxName && IsPrintable(place.function));
  Require(place.file.size() <= JitCode::kMaxName && IsPrintable(place.file));
}

bool IsSame(const std::optional<JitDump::Place>& a, const std::optional<JitDump::Place>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->function == b->function && a->file == b->file && a->line == b->line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const size_t split = (size - 1) * bytes[0] / 255;
  ++bytes;
  --size;
  const UniqueFd fd = FuzzFile(bytes, split);
  JitDump in_parts(kRoom);
  const bool has_begun = in_parts.Update(fd.get(), /*has_stopped=*/false, kNow).has_value();
  Require(::write(fd.get(), bytes + split, size - split) >= 0);
  JitDump at_once(kRoom);
  const bool is_good = at_once.Update(fd.get(), /*has_stopped=*/false, kNow).has_value();
  Require(in_parts.Update(fd.get(), /*has_stopped=*/false, kNow).has_value() == is_good);
  Require(has_begun || !is_good);
  Require(in_parts.bad_records() == at_once.bad_records());
  for (uint64_t address = 0; address < 0x200; ++address) {
    for (const uint64_t when : {0, 8, 1000}) {
      const auto place = at_once.Find(Address(address), MonotonicTime(when));
      if (place) CheckPlace(*place);
      Require(IsSame(place, in_parts.Find(Address(address), MonotonicTime(when))));
    }
  }
  Require(at_once.Update(fd.get(), /*has_stopped=*/true, kNow).has_value() == is_good);
  Require(at_once.bytes() < 3 * kRoom);
  return 0;
}
