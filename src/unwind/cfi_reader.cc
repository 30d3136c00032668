// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi_reader.h"

#include <absl/container/flat_hash_map.h>

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "binary/dwarf_cursor.h"
#include "unwind/cfa_machine.h"
#include "unwind/encoded_pointer.h"

namespace pyrometer {
namespace {

// A CIE takes 600 bytes here and as few as 13 there. Linkers merge equal ones in .eh_frame, and
// .debug_frame has one for each source file. Of a section this many positions are tried, at most.
constexpr size_t kMaxCies = 65536;
// Of one CIE. FDEs may name any position as their CIE's, so what a CIE may cost must be small.
constexpr size_t kMaxAugmentation = 16;
constexpr size_t kMaxInitialInstructions = 512;
constexpr uint32_t kBadCie = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kWideLength = 0xffffffff;

struct Record {
  size_t end = 0;  // in the section
  bool empty = false;
  bool wide = false;  // 64-bit DWARF
  size_t id_position = 0;
  uint64_t id = 0;   // what tells CIEs from FDEs, and leads from these to their CIE
  DwarfCursor body;  // behind the id
};

class CfiReader {
 public:
  CfiReader(const CfiSection& section, size_t most, CallFrameInfo& info)
      : section_(section), info_(info), room_(most) {}

  void ReadAll() {
    for (size_t position = 0; position < section_.bytes.size();) {
      const std::optional<Record> record = RecordAt(position);
      if (!record) {
        ++info_.bad_fdes;
        return;
      }
      if (record->empty && section_.ends_at_terminator) return;
      if (!record->empty && !IsCie(*record)) AddFde(*record);
      position = record->end;
    }
  }

 private:
  bool InEhFrame() const { return section_.format == CfiSection::Format::kEhFrame; }

  // The record at `position`; nothing if it does not end within the section.
  std::optional<Record> RecordAt(size_t position) const {
    Record record;
    DwarfCursor cursor(section_.bytes, position);
    uint64_t length = cursor.Fixed<uint32_t>();
    record.wide = length == kWideLength;
    if (record.wide) length = cursor.Fixed<uint64_t>();
    if (!cursor.ok() || length > cursor.remaining()) return std::nullopt;
    record.id_position = cursor.position();
    record.end = record.id_position + length;
    record.empty = length == 0;
    if (record.empty) return record;
    const std::span<const std::byte> bytes(section_.bytes);
    record.body = DwarfCursor(bytes.first(record.end), record.id_position);
    // The id has 32 bits in every .eh_frame.
    record.id =
        record.wide && !InEhFrame() ? record.body.Fixed<uint64_t>() : record.body.Fixed<uint32_t>();
    return record;
  }

  bool IsCie(const Record& record) const {
    if (InEhFrame()) return record.id == 0;
    return record.id == (record.wide ? std::numeric_limits<uint64_t>::max() : kWideLength);
  }

  void AddFde(const Record& record) {
    // .eh_frame tells how far back the CIE is.
    const uint64_t position = InEhFrame() ? record.id_position - record.id : record.id;
    const uint32_t cie = CieAt(position);
    std::optional<Fde> fde;
    if (cie != kBadCie) fde = ParseFde(info_.cies[cie], record.body);
    if (!fde || room_ == 0) {
      ++info_.bad_fdes;
      return;
    }
    if (fde->begin == fde->end) return;
    fde->cie = cie;
    info_.fdes.push_back(*fde);
    --room_;
  }

  std::optional<Fde> ParseFde(const Cie& cie, DwarfCursor body) const {
    const PointerBases bases = {.section = section_.address, .data = {}};
    const std::optional<uint64_t> begin = ReadEncodedPointer(body, cie.pointer_encoding, bases);
    const std::optional<uint64_t> size =
        ReadEncodedPointer(body, cie.pointer_encoding & kPointerFormat, bases);
    if (!begin || !size || *size > std::numeric_limits<uint64_t>::max() - *begin) {
      return std::nullopt;
    }
    if (cie.sized_additions) body.Bytes(body.Uleb());
    if (!body.ok()) return std::nullopt;
    return Fde{.begin = *begin,
               .end = *begin + *size,
               .from = *begin,
               .cie = 0,
               .instructions = static_cast<uint32_t>(body.position()),
               .instructions_size = static_cast<uint32_t>(body.remaining())};
  }

  // Index of the CIE at `position` of the section, or kBadCie.
  uint32_t CieAt(uint64_t position) {
    if (position == last_position_) return last_cie_;
    last_position_ = position;
    const auto known = cies_.find(position);
    last_cie_ = known != cies_.end() ? known->second : TryCie(position);
    return last_cie_;
  }

  uint32_t TryCie(uint64_t position) {
    if (cies_.size() == kMaxCies || info_.cies.size() == kMaxCies) return kBadCie;
    uint32_t& number = cies_.emplace(position, kBadCie).first->second;
    if (const std::optional<Cie> cie = ReadCie(position)) {
      number = static_cast<uint32_t>(info_.cies.size());
      info_.cies.push_back(*cie);
    }
    return number;
  }

  std::optional<Cie> ReadCie(uint64_t position) {
    if (position >= section_.bytes.size()) return std::nullopt;
    const std::optional<Record> record = RecordAt(position);
    if (!record || record->empty || !record->body.ok() || !IsCie(*record)) return std::nullopt;
    std::optional<Cie> cie = ParseCie(record->body);
    if (!cie) return std::nullopt;
    const std::optional<FrameRules> initial = machine_.Initial(*cie);
    if (!initial) return std::nullopt;
    cie->initial = *initial;
    return cie;
  }

  std::optional<Cie> ParseCie(DwarfCursor body) const {
    Cie cie;
    cie.section = section_.bytes;
    cie.section_address = section_.address;
    const auto version = body.Fixed<uint8_t>();
    const std::string_view augmentation = body.String(kMaxAugmentation);
    if (version != 1 && version != 3 && version != 4) return std::nullopt;
    if (version == 4 && !HasPlainAddresses(body)) return std::nullopt;
    cie.code_alignment = body.Uleb();
    cie.data_alignment = body.Sleb();
    const uint64_t return_address = version == 1 ? body.Fixed<uint8_t>() : body.Uleb();
    if (return_address >= kCfiRegisters) return std::nullopt;
    cie.return_address = static_cast<uint8_t>(return_address);
    if (!ParseAugmentation(augmentation, body, cie) || !body.ok()) return std::nullopt;
    if (body.remaining() > kMaxInitialInstructions) return std::nullopt;
    cie.instructions = static_cast<uint32_t>(body.position());
    cie.instructions_size = static_cast<uint32_t>(body.remaining());
    return cie;
  }

  // Version 4: addresses of 8 bytes and no segment selectors.
  static bool HasPlainAddresses(DwarfCursor& body) {
    const auto address_size = body.Fixed<uint8_t>();
    const auto selector_size = body.Fixed<uint8_t>();
    return address_size == sizeof(uint64_t) && selector_size == 0;
  }

  bool ParseAugmentation(std::string_view letters, DwarfCursor& body, Cie& cie) const {
    if (letters.empty()) return true;
    if (!letters.starts_with('z')) return false;
    cie.sized_additions = true;
    const uint64_t size = body.Uleb();
    const size_t begin = body.position();
    body.Bytes(size);  // the instructions follow
    if (!body.ok()) return false;
    const std::span<const std::byte> bytes(section_.bytes);
    DwarfCursor additions(bytes.first(begin + size), begin);
    for (const char letter : letters.substr(1)) {
      if (!ParseAddition(letter, additions, cie)) return false;
    }
    return additions.ok();
  }

  bool ParseAddition(char letter, DwarfCursor& additions, Cie& cie) const {
    switch (letter) {
      case 'R':
        cie.pointer_encoding = additions.Fixed<uint8_t>();
        return true;
      case 'S':
        cie.signal_frame = true;
        return true;
      case 'L':  // how the FDEs store a pointer that is of no interest here
        additions.Fixed<uint8_t>();
        return true;
      case 'P': {  // the personality routine; indirect mostly, and read to get behind it
        const auto encoding = additions.Fixed<uint8_t>();
        return ReadEncodedPointer(additions, encoding & kPointerFormat, {}).has_value();
      }
      case 'B':  // arm64: return addresses are signed with key B
      case 'G':  // arm64: tagged stack memory
        return true;
      default:
        return false;
    }
  }

  const CfiSection& section_;
  CallFrameInfo& info_;
  size_t room_;  // for so many FDEs more
  CfaMachine machine_;
  absl::flat_hash_map<uint64_t, uint32_t> cies_;  // by position
  uint64_t last_position_ = std::numeric_limits<uint64_t>::max();
  uint32_t last_cie_ = kBadCie;
};

}  // namespace

void ReadCallFrameInfo(const CfiSection& section, size_t most, CallFrameInfo& info) {
  CfiReader(section, most, info).ReadAll();
}

}  // namespace pyrometer
