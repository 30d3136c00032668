// SPDX-License-Identifier: Apache-2.0
// Is not run to be profiled: what matters is what a compiler makes of it, and tells of that.
#include <cstdio>
#include <numeric>

#include "ledger.h"

extern "C" uint64_t plain_c(const unsigned char* bytes, uint64_t size);

namespace ledger {
volatile uint64_t unknown = 3;
}

namespace {

// The same function in two units.
template <typename T>
T Sum(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), T{}, [](T a, T b) { return a + b; });
}

struct Report {
  explicit Report(const std::vector<uint64_t>& values)
      : total(Sum(values)), text("total " + std::to_string(total)) {}
  Report(const Report&) = delete;
  ~Report() { std::puts(text.c_str()); }
  uint64_t total;
  std::string text;
};

uint64_t unused_here(uint64_t x) {
  return steps::Nest<2>::Apply([](uint64_t y) { return y / 3; }, x);
}

}  // namespace

// Dropped by the linker where it drops sections.
uint64_t NeverCalled(uint64_t x) {
  return unused_here(x) + ledger::unknown;
}

int main(int argc, char** argv) {
  std::vector<uint64_t> amounts;
  for (int i = 0; i < argc * 50; ++i)
    amounts.push_back(steps::Clamp(i * 7, 3, ledger::unknown * 90));
  const Report report(amounts);
  const ledger::Fixed<3> fixed(report.total);
  const auto* const name = reinterpret_cast<const unsigned char*>(argv[0]);
  std::printf("%lu %lu %lu\n", ledger::Settle(amounts), ledger::Total(fixed, 1, 2, 3),
              plain_c(name, std::char_traits<char>::length(argv[0])));
  return ledger::Histogram(argv[0]) == 0 ? 1 : 0;
}
