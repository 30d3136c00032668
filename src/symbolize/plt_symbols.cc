// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt_symbols.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "binary/relocations.h"
#include "binary/segments.h"
#include "symbolize/plt_stubs.h"

namespace pyrometer {
namespace {

using Code = SymbolTableBuilder::Code;
using KnownCode = SymbolTableBuilder::KnownCode;

// The largest programs have some 10,000 stubs of 16 bytes.
constexpr uint64_t kMostStubCode = uint64_t{16} << 20;
constexpr size_t kMostStubs = size_t{256} << 10;

constexpr std::string_view kPltSections[] = {".plt", ".plt.got", ".plt.sec", ".iplt"};

// A stub, and what its slot is relocated by.
struct BoundStub {
  PltStub stub;
  enum class By : uint8_t { kNothing, kSymbol, kFunction } by = By::kNothing;
  // Of a symbol its number, then where its name is; else where the function begins.
  uint64_t value = 0;
};

// Sorted; of overlapping ones the first.
std::vector<CodeRange> DisjointRanges(std::vector<CodeRange> ranges) {
  std::ranges::stable_sort(ranges, {}, &CodeRange::begin);
  ElfAddress end(0);
  std::erase_if(ranges, [&](const CodeRange& range) {
    const bool overlaps = range.begin < end;
    if (!overlaps) end = range.end;
    return overlaps;
  });
  return ranges;
}

std::vector<CodeRange> PltSections(const ElfFile& elf, const SectionTable& sections) {
  std::vector<CodeRange> ranges;
  for (const Section& section : sections.all()) {
    if ((section.header.sh_flags & SHF_EXECINSTR) == 0 ||
        std::ranges::find(kPltSections, section.name) == std::end(kPltSections)) {
      continue;
    }
    const ElfAddress begin(section.header.sh_addr);
    const Segment* const segment = ExecutableSegmentAt(elf.segments(), begin);
    if (segment == nullptr) continue;
    const uint64_t room = segment->memory_size - (begin.value() - segment->address.value());
    ranges.push_back({begin, ElfAddress(begin.value() + std::min(section.header.sh_size, room))});
  }
  return DisjointRanges(std::move(ranges));
}

std::vector<CodeRange> ExecutableCode(const ElfFile& elf) {
  std::vector<CodeRange> ranges;
  for (const Segment& segment : elf.segments()) {
    if (!segment.executable) continue;
    const ElfAddress end(segment.address.value() + segment.file_size);
    ranges.push_back({segment.address, end});
  }
  return DisjointRanges(std::move(ranges));
}

class PltReader {
 public:
  PltReader(const ElfFile& elf, const SectionTable& sections) : elf_(elf), sections_(sections) {}

  std::vector<BoundStub> Read(std::span<const CodeRange> ranges, PltPlace place,
                              const std::optional<SymbolRange>& symbols) {
    for (const CodeRange& range : ranges) FindStubs(range, place);
    if (stubs_.empty()) return {};
    BindSlots();
    FindNames(symbols);
    std::ranges::sort(stubs_, {}, [](const BoundStub& b) { return b.stub.range.begin; });
    return std::move(stubs_);
  }

 private:
  void FindStubs(const CodeRange& range, PltPlace place) {
    const std::optional<FileOffset> offset = ToFileOffset(elf_.segments(), range.begin);
    if (!offset || offset->value() >= elf_.bytes().size()) return;
    const uint64_t size = std::min({range.end.value() - range.begin.value(),
                                    elf_.bytes().size() - offset->value(), kMostStubCode - read_});
    read_ += size;
    const auto code = ReadArray<std::byte>(elf_.bytes(), offset->value(), size);
    if (!code) return;
    for (const PltStub& stub : FindPltStubs(*code, range.begin, elf_.header().e_machine, place)) {
      if (stubs_.size() < kMostStubs) stubs_.push_back({.stub = stub});
    }
  }

  // Mostly the first relocations have them all, and the others need not be read.
  void BindSlots() {
    std::ranges::sort(stubs_, {}, SlotOf);
    size_t left = stubs_.size();
    for (const RelocationRange& range : FindRelocations(elf_, sections_)) {
      if (left == 0) break;
      ForEachRelocation(elf_, range, [&](const Elf64_Rela& relocation) {
        left -= Bind(relocation);
        return left > 0;
      }).has_value();
    }
  }

  // How many stubs jump through its slot.
  size_t Bind(const Elf64_Rela& relocation) {
    const auto by = KindOf(ELF64_R_TYPE(relocation.r_info));
    if (by == BoundStub::By::kNothing) return 0;
    size_t bound = 0;
    const ElfAddress slot(relocation.r_offset);
    for (auto stub = std::ranges::lower_bound(stubs_, slot, {}, SlotOf);
         stub != stubs_.end() && SlotOf(*stub) == slot; ++stub) {
      if (stub->by != BoundStub::By::kNothing) continue;
      stub->by = by;
      stub->value = by == BoundStub::By::kSymbol ? ELF64_R_SYM(relocation.r_info)
                                                 : static_cast<uint64_t>(relocation.r_addend);
      ++bound;
    }
    return bound;
  }

  BoundStub::By KindOf(uint64_t type) const {
    const bool is_arm = elf_.header().e_machine == EM_AARCH64;
    const auto is = [&](uint64_t x86, uint64_t arm) { return type == (is_arm ? arm : x86); };
    if (is(R_X86_64_JUMP_SLOT, R_AARCH64_JUMP_SLOT)) return BoundStub::By::kSymbol;
    if (is(R_X86_64_GLOB_DAT, R_AARCH64_GLOB_DAT)) return BoundStub::By::kSymbol;
    if (is(R_X86_64_IRELATIVE, R_AARCH64_IRELATIVE)) return BoundStub::By::kFunction;
    return BoundStub::By::kNothing;
  }

  // Of symbols where their names are, in one pass. What has no symbol is bound to nothing.
  void FindNames(const std::optional<SymbolRange>& symbols) {
    std::ranges::sort(stubs_, {}, &BoundStub::value);
    const uint64_t begin = symbols ? symbols->symbols.value() : 0;
    ReadAhead entries(elf_.bytes(), begin, symbols ? elf_.bytes().size() : 0);
    for (BoundStub& stub : stubs_) {
      if (stub.by != BoundStub::By::kSymbol) continue;
      stub.by = BoundStub::By::kNothing;
      const auto entry = entries.At(begin + stub.value * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
      if (stub.value == 0 || !entry || entry->size() < sizeof(Elf64_Sym)) continue;
      Elf64_Sym symbol;
      std::memcpy(&symbol, entry->data(), sizeof(symbol));
      stub.by = BoundStub::By::kSymbol;
      stub.value = symbol.st_name;
    }
  }

  static ElfAddress SlotOf(const BoundStub& stub) { return stub.stub.slot; }

  const ElfFile& elf_;
  const SectionTable& sections_;
  uint64_t read_ = 0;
  std::vector<BoundStub> stubs_;
};

KnownCode KnownStub(const BoundStub& stub) {
  const Code code = stub.by == BoundStub::By::kSymbol ? Code::kStub : Code::kIndirectStub;
  return {.range = stub.stub.range, .code = code, .function = stub.value};
}

// Stubs, and between them the rest of the sections that they lie in.
std::vector<KnownCode> WithTheRest(std::span<const CodeRange> sections,
                                   std::span<const BoundStub> stubs) {
  std::vector<KnownCode> all;
  auto stub = stubs.begin();
  for (const CodeRange& section : sections) {
    ElfAddress at = section.begin;
    const auto rest_until = [&](ElfAddress end) {
      if (at < end) all.push_back({.range = {at, end}, .code = Code::kPlt});
    };
    for (; stub != stubs.end() && stub->stub.range.begin < section.end; ++stub) {
      rest_until(stub->stub.range.begin);
      all.push_back(KnownStub(*stub));
      at = stub->stub.range.end;
    }
    rest_until(section.end);
  }
  return all;
}

}  // namespace

std::vector<KnownCode> ReadPlt(const ElfFile& elf, const SectionTable& sections,
                               const std::optional<SymbolRange>& symbols) {
  const bool has_sections = !sections.all().empty();
  const std::vector<CodeRange> ranges =
      has_sections ? PltSections(elf, sections) : ExecutableCode(elf);
  std::vector<BoundStub> stubs =
      PltReader(elf, sections)
          .Read(ranges, has_sections ? PltPlace::kSection : PltPlace::kAnywhere, symbols);
  std::erase_if(stubs, [](const BoundStub& stub) { return stub.by == BoundStub::By::kNothing; });
  if (has_sections) return WithTheRest(ranges, stubs);
  std::vector<KnownCode> all;
  std::ranges::transform(stubs, std::back_inserter(all), KnownStub);
  return all;
}

}  // namespace pyrometer
