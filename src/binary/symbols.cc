// SPDX-License-Identifier: Apache-2.0
#include "binary/symbols.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "binary/dynamic_section.h"

namespace pyrometer {
namespace {

// Four times what the largest debug build has. A sparse file may claim any number of them, and
// reading this many of its zeros takes a tenth of a second.
constexpr uint64_t kMaxSymbols = uint64_t{16} << 20;
constexpr uint64_t kMaxHashBuckets = uint64_t{4} << 20;

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

// DT_HASH: {buckets, chains, ...}; there is one chain entry per symbol.
Result<uint64_t> CountByHash(const ElfFile& elf, ElfAddress hash) {
  struct Header {
    uint32_t buckets;
    uint32_t chains;
  };
  ASSIGN_OR_RETURN(const FileOffset offset, FileOffsetOf(elf, hash));
  ASSIGN_OR_RETURN(const auto header, ReadObject<Header>(elf.bytes(), offset.value()));
  return uint64_t{header.chains};
}

// DT_GNU_HASH: the last symbol is the end of the chain that the highest bucket starts. A chain
// ends with the entry whose lowest bit is set.
Result<uint64_t> CountByGnuHash(const ElfFile& elf, ElfAddress hash) {
  struct Header {
    uint32_t buckets;
    uint32_t first_symbol;
    uint32_t bloom_words;
    uint32_t bloom_shift;
  };
  ASSIGN_OR_RETURN(const FileOffset offset, FileOffsetOf(elf, hash));
  ASSIGN_OR_RETURN(const auto header, ReadObject<Header>(elf.bytes(), offset.value()));
  if (header.buckets > kMaxHashBuckets) {
    return Fail(ErrorCode::kExhausted, "a hash table of {} buckets", header.buckets);
  }
  const uint64_t buckets_at =
      offset.value() + sizeof(Header) + uint64_t{header.bloom_words} * sizeof(uint64_t);
  ASSIGN_OR_RETURN(const auto buckets,
                   ReadArray<uint32_t>(elf.bytes(), buckets_at, header.buckets));
  uint32_t symbol = 0;
  for (const uint32_t first : buckets) symbol = std::max(symbol, first);
  // Without a hashed symbol there are only undefined ones.
  if (symbol < header.first_symbol || symbol == 0) return uint64_t{header.first_symbol};

  const uint64_t chains_at = buckets_at + buckets.size() * sizeof(uint32_t);
  ReadAhead chains(elf.bytes(), chains_at, elf.bytes().size());
  for (uint64_t index = symbol; index < kMaxSymbols; ++index) {
    const uint64_t at = chains_at + (index - header.first_symbol) * sizeof(uint32_t);
    ASSIGN_OR_RETURN(const auto bytes, chains.At(at, sizeof(uint32_t)));
    uint32_t entry = 0;
    if (bytes.size() < sizeof(entry)) break;
    std::memcpy(&entry, bytes.data(), sizeof(entry));
    if ((entry & 1) != 0) return index + 1;
  }
  return Fail(ErrorCode::kMalformed, "a hash chain without an end");
}

Result<uint64_t> Bounded(uint64_t count) {
  if (count > kMaxSymbols) return Fail(ErrorCode::kExhausted, "{} symbols", count);
  return count;
}

}  // namespace

Result<SymbolRange> FindSymbols(const SectionTable& sections, uint32_t type) {
  const Section* const symbols = sections.FindType(type);
  if (symbols == nullptr) return Fail(ErrorCode::kNotFound, "no symbol table");
  const Section* const names = sections.At(symbols->header.sh_link);
  if (symbols->header.sh_entsize != sizeof(Elf64_Sym) || names == nullptr ||
      names->header.sh_type != SHT_STRTAB) {
    return Fail(ErrorCode::kMalformed, "{} is no symbol table with names", symbols->name);
  }
  if (((symbols->header.sh_flags | names->header.sh_flags) & SHF_COMPRESSED) != 0) {
    return Fail(ErrorCode::kUnsupported, "{} is compressed", symbols->name);
  }
  ASSIGN_OR_RETURN(const uint64_t count, Bounded(symbols->header.sh_size / sizeof(Elf64_Sym)));
  return SymbolRange{.symbols = FileOffset(symbols->header.sh_offset),
                     .count = count,
                     .names = FileOffset(names->header.sh_offset),
                     .names_size = names->header.sh_size};
}

bool IsProgram(const ElfFile& elf) {
  if (elf.header().e_type == ET_EXEC) return true;
  const Result<DynamicSection> dynamic = DynamicSection::Read(elf);
  if (!dynamic) return false;
  const auto headers = elf.program_headers();
  const bool has_interpreter =
      std::ranges::find(headers, uint32_t{PT_INTERP}, &Elf64_Phdr::p_type) != headers.end();
  return dynamic->is_pie || (has_interpreter && !dynamic->has_soname);
}

Result<SymbolRange> FindDynamicSymbols(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const DynamicSection dynamic, DynamicSection::Read(elf));
  if (!dynamic.symbols || !dynamic.names || (!dynamic.hash && !dynamic.gnu_hash)) {
    return Fail(ErrorCode::kNotFound, "no dynamic symbols that could be counted");
  }
  if (dynamic.symbol_size != sizeof(Elf64_Sym)) {
    return Fail(ErrorCode::kMalformed, "dynamic symbols of {} bytes", dynamic.symbol_size);
  }
  ASSIGN_OR_RETURN(const FileOffset symbols, FileOffsetOf(elf, *dynamic.symbols));
  ASSIGN_OR_RETURN(const FileOffset names, FileOffsetOf(elf, *dynamic.names));
  ASSIGN_OR_RETURN(const uint64_t count, dynamic.hash ? CountByHash(elf, *dynamic.hash)
                                                      : CountByGnuHash(elf, *dynamic.gnu_hash));
  ASSIGN_OR_RETURN(const uint64_t bounded, Bounded(count));
  return SymbolRange{
      .symbols = symbols, .count = bounded, .names = names, .names_size = dynamic.names_size};
}

Result<void> ForEachSymbol(const ElfFile& elf, const SymbolRange& range,
                           const std::function<void(const Elf64_Sym&)>& visit) {
  constexpr uint64_t kBatch = ReadAhead::kDefaultStep / sizeof(Elf64_Sym);
  std::vector<Elf64_Sym> batch;
  for (uint64_t done = 1; done < range.count; done += batch.size()) {
    const uint64_t at = SaturatingAdd(range.symbols.value(), done * sizeof(Elf64_Sym));
    ASSIGN_OR_RETURN(batch,
                     ReadArray<Elf64_Sym>(elf.bytes(), at, std::min(kBatch, range.count - done)));
    for (const Elf64_Sym& symbol : batch) visit(symbol);
  }
  return {};
}

SymbolNames::SymbolNames(const ElfFile& elf, const SymbolRange& range)
    : begin_(range.names.value()),
      bytes_(elf.bytes(), begin_, SaturatingAdd(begin_, range.names_size)) {}

Result<std::string_view> SymbolNames::At(uint32_t offset) {
  ASSIGN_OR_RETURN(const auto bytes, bytes_.At(SaturatingAdd(begin_, offset), kMaxName));
  if (bytes.empty()) return std::string_view();
  const auto* const name = reinterpret_cast<const char*>(bytes.data());
  return std::string_view(name, ::strnlen(name, bytes.size()));
}

}  // namespace pyrometer
