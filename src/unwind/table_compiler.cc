// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_compiler.h"

#include <elf.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "unwind/call_frame_info.h"
#include "unwind/cfa_machine.h"
#include "unwind/cfi_reader.h"
#include "unwind/cfi_sections.h"
#include "unwind/fde_ranges.h"
#include "unwind/go_call_frame_info.h"
#include "unwind/go_frames.h"
#include "unwind/rule_classifier.h"
#include "unwind/rule_set.h"
#include "unwind/table_builder.h"

namespace pyrometer {
namespace {

// Of one object, from all sources. The largest files of a Debian machine have 100,000.
constexpr size_t kMaxFunctions = 2'000'000;

// The call frame information of one object from all its sources, as disjoint functions.
class Sources {
 public:
  explicit Sources(const ElfFile& elf) : elf_(elf) {}

  // What Go's own .debug_frame has wrong. REQUIRES: comes before all other sources.
  void Add(std::span<const GoFrames> go) {
    if (go.empty()) return;
    constexpr uint32_t kOutermost = 0;
    constexpr uint32_t kSignal = 1;
    constexpr uint32_t kSwitched = 2;
    constexpr uint32_t kLost = 3;
    constexpr uint32_t kBeginning = 4;
    info_.cies.resize(5);
    for (Cie& cie : info_.cies) {
      cie.return_address = kAmd64.return_address;
      cie.initial.cfa = {
          .kind = CfiRule::Kind::kInRegister, .reg = kAmd64.stack_pointer, .offset = 8};
      cie.initial.registers[kAmd64.return_address] = {.kind = CfiRule::Kind::kAtCfa, .offset = -8};
    }
    info_.cies[kOutermost].initial.registers[kAmd64.return_address].kind =
        CfiRule::Kind::kUndefined;
    info_.cies[kSignal].signal_frame = true;
    info_.cies[kSignal].initial = {};
    info_.cies[kSwitched].is_switched = true;
    FrameRules& switched = info_.cies[kSwitched].initial;
    switched.cfa = {.kind = CfiRule::Kind::kInRegister, .reg = kAmd64.frame_pointer, .offset = 16};
    switched.registers[kAmd64.frame_pointer] = {.kind = CfiRule::Kind::kAtCfa, .offset = -16};
    info_.cies[kLost].initial.cfa.offset = 9;  // no frame is there
    const auto cie_of = [](GoFrames::Kind kind) {
      switch (kind) {
        case GoFrames::Kind::kOutermost:
          return kOutermost;
        case GoFrames::Kind::kSignal:
          return kSignal;
        case GoFrames::Kind::kSwitched:
          return kSwitched;
        case GoFrames::Kind::kLost:
          return kLost;
        case GoFrames::Kind::kBeginning:
          break;
      }
      return kBeginning;
    };
    for (const GoFrames& frames : go) {
      info_.fdes.push_back({.begin = frames.begin,
                            .end = frames.end,
                            .from = frames.begin,
                            .cie = cie_of(frames.kind)});
    }
    KeepCode(info_.fdes, elf_.segments());
    ResolveOverlaps(info_.fdes);
  }

  // Adds what covers code that earlier sources have left out.
  void Add(Result<CfiSection> section) {
    if (!section) {
      const bool absent = section.error().code() == ErrorCode::kNotFound;
      if (!absent && !failure_) failure_ = std::move(section).error();
      return;
    }
    const CfiSection& kept = sections_.emplace_back(*std::move(section));
    std::vector<Fde> earlier = std::exchange(info_.fdes, {});
    ReadCallFrameInfo(kept, kMaxFunctions - std::min(kMaxFunctions, earlier.size()), info_);
    KeepCode(info_.fdes, elf_.segments());
    overlaps_ += ResolveOverlaps(info_.fdes);
    if (earlier.empty()) return;
    const std::vector<Fde> later = Uncovered(info_.fdes, earlier);
    info_.fdes.resize(earlier.size() + later.size());
    std::ranges::merge(earlier, later, info_.fdes.begin(), {}, &Fde::from, &Fde::from);
  }

  const CallFrameInfo& info() const { return info_; }
  uint32_t overlaps() const { return overlaps_; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  const ElfFile& elf_;
  std::vector<CfiSection> sections_;  // info_ refers to their bytes, which stay where they are
  CallFrameInfo info_;
  uint32_t overlaps_ = 0;
  std::optional<Error> failure_;  // the first
};

// Of the executable segments, in bytes.
uint64_t TextOf(const ElfFile& elf) {
  uint64_t text = 0;
  for (const Segment& segment : elf.segments()) {
    if (segment.executable) text += segment.file_size;
  }
  return text;
}

// See UnwindTable::sparse.
bool IsSparse(const UnwindTable& table) {
  constexpr uint64_t kSparseBelow = 10;  // percent
  return table.covered_text < table.text / 100 * kSparseBelow;
}

// Where a process begins, in files that do not say how to unwind it: no frame lies above. What is
// not covered from there to the next function belongs to it (ld.so: _start and _dl_start_user, as
// long as 64 bytes). Empty if there is no such code, or no function as near as a table reaches.
struct EntryCode {
  uint64_t from = 0;
  uint64_t end = 0;
};

EntryCode FindEntryCode(const ElfFile& elf, const CallFrameInfo& info) {
  constexpr uint64_t kLongest = 64;
  const uint64_t entry = elf.header().e_entry;
  const Segment* const text = ExecutableSegmentAt(elf.segments(), ElfAddress(entry));
  if (text == nullptr || info.fdes.empty()) return {};
  const uint64_t room = text->memory_size - (entry - text->address.value());
  EntryCode code{.from = entry, .end = entry + std::min(kLongest, room)};
  const uint64_t first = PageOf(info.fdes.front().from);
  if (PageOf(code.from) + UnwindTable::kMostPages <= first ||
      PageOf(code.end) >= first + UnwindTable::kMostPages) {
    return {};
  }
  for (const Fde& fde : info.fdes) {
    if (fde.from <= entry && entry < fde.end) return {};
    if (fde.from > entry) {
      code.end = std::min(code.end, fde.from);
      break;
    }
  }
  return code;
}

class TableCompiler {
 public:
  TableCompiler(const CallFrameInfo& info, const EntryCode& entry, const Machine& machine,
                RowSink* rows)
      : info_(info), entry_(entry), classifier_(machine), builder_(rows) {}

  // False if `stop` came first.
  bool AddAll(const std::stop_token& stop) {
    if (info_.fdes.empty()) return true;
    const uint64_t first = info_.fdes.front().from;
    bool entered = entry_.end == 0;
    const uint64_t limit =
        PageOf(entered ? first : std::min(first, entry_.from)) + UnwindTable::kMostPages;
    for (const Fde& fde : info_.fdes) {
      if (stop.stop_requested()) return false;
      if (!entered && fde.from >= entry_.end) {
        CoverEntry();
        entered = true;
      }
      if (PageOf(fde.end - 1) >= limit || !ReadRows(fde)) {
        ++table_.bad_functions;
        continue;
      }
      for (const Row& row : function_) builder_.Cover(row.begin, row.end, row.rule);
      ++table_.functions;
      table_.covered_text += fde.end - fde.from;
    }
    if (!entered) CoverEntry();
    return true;
  }

  UnwindTable Finish() && {
    std::move(builder_).Finish(table_);
    std::move(rules_).Finish(table_);
    const std::string_view rules(reinterpret_cast<const char*>(table_.rules.data()),
                                 table_.rules.size() * sizeof(pyro_unwind_rule));
    static_assert(std::has_unique_object_representations_v<pyro_unwind_rule>);
    table_.digest = absl::HashOf(table_.digest, rules);
    return std::move(table_);
  }

 private:
  struct Row {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint16_t rule = 0;
  };

  void CoverEntry() {
    pyro_unwind_rule outermost{};
    outermost.kind = PYRO_RULE_END;
    const std::optional<uint16_t> rule = rules_.Intern(outermost);
    if (rule && builder_.HasRoomFor(1)) builder_.Cover(entry_.from, entry_.end, *rule);
  }

  // Into function_. False if `fde` is malformed, or needs more rules or rows than there is room
  // for.
  bool ReadRows(const Fde& fde) {
    const Cie& cie = info_.cies[fde.cie];
    function_.clear();
    bool fp_was_saved = false;
    for (machine_.Start(cie, fde); machine_.Next();) {
      fp_was_saved |= classifier_.SavesFramePointer(machine_.rules());
      if (machine_.end() <= fde.from) continue;
      const std::optional<uint16_t> rule = RuleFor(machine_.rules(), cie, fp_was_saved);
      if (!rule || !builder_.HasRoomFor(function_.size() + 1)) return false;
      function_.push_back({std::max(machine_.begin(), fde.from), machine_.end(), *rule});
    }
    return !machine_.failed();
  }

  std::optional<uint16_t> RuleFor(const FrameRules& rules, const Cie& cie, bool fp_was_saved) {
    const std::optional<pyro_unwind_rule> rule = classifier_.Classify(rules, cie, fp_was_saved);
    if (!rule) return std::nullopt;
    if (rule->kind == PYRO_RULE_EXOTIC) {
      const std::optional<ExoticRule> exotic = MakeExotic(rules, cie);
      return exotic ? rules_.InternExotic(*exotic) : std::nullopt;
    }
    return rules_.Intern(*rule);
  }

  const CallFrameInfo& info_;
  const EntryCode entry_;
  RuleClassifier classifier_;
  CfaMachine machine_;
  RuleSet rules_;
  TableBuilder builder_;
  UnwindTable table_;
  std::vector<Row> function_;  // of the function that is being read
};

Result<UnwindTable> Compile(const ElfFile& elf, const Sources& sources,
                            const UnwindTableOptions& options) {
  const Machine& machine = elf.header().e_machine == EM_X86_64 ? kAmd64 : kArm64;
  TableCompiler compiler(sources.info(), FindEntryCode(elf, sources.info()), machine, options.rows);
  if (!compiler.AddAll(options.stop)) {
    return Fail(ErrorCode::kExhausted, "stopped before the unwind table was made");
  }
  UnwindTable table = std::move(compiler).Finish();
  if (table.empty() && sources.failure()) return *sources.failure();
  table.bad_functions += sources.info().bad_fdes;
  table.overlaps = sources.overlaps();
  table.text = TextOf(elf);
  table.sparse = IsSparse(table);
  return table;
}

void AddOwn(const ElfFile& elf, Sources& sources) {
  const Result<SectionTable> sections = SectionTable::Read(elf);
  if (sections) sources.Add(FindGoFrames(elf, *sections));
  sources.Add(ReadEhFrame(elf, sections));
  // Before .debug_frame, which says the same but for the frame pointer.
  if (sections) sources.Add(MakeGoCallFrameInfo(elf, *sections));
  sources.Add(ReadDebugFrame(elf, sections));
}

}  // namespace

Result<UnwindTable> CompileUnwindTable(const ElfFile& elf, const UnwindTableOptions& options) {
  Sources sources(elf);
  AddOwn(elf, sources);
  return Compile(elf, sources, options);
}

Result<UnwindTable> CompileUnwindTable(const ElfFile& elf, const ElfFile& debug_file,
                                       const UnwindTableOptions& options) {
  Sources sources(elf);
  AddOwn(elf, sources);
  sources.Add(ReadDebugFrame(debug_file, SectionTable::Read(debug_file)));
  return Compile(elf, sources, options);
}

}  // namespace pyrometer
