// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "process/program_mappings.h"
#include "pyrometer/cold_sample.h"
#include "pyrometer/frame.h"
#include "pyrometer/mapping.h"
#include "pyrometer/unwind_table.h"
#include "unwind/unwinder.h"

namespace pyrometer {

// Where a ColdView gets unwind tables and code from.
class UnwindTableSource {
 public:
  enum class Code : uint8_t {
    kRead,
    kNone,  // there are no such bytes
    kLate,  // they did not come in time
  };

  virtual ~UnwindTableSource() = default;
  // Null if it is not there yet: then it is being made. Empty if there is no call frame
  // information, and unread if the object's file could not be read. Never waits for a file.
  virtual std::shared_ptr<const UnwindTable> Of(ObjectId object) = 0;
  // True if Of() would most likely return a table.
  virtual bool Has(ObjectId object) const = 0;
  // True while the object's table is being made.
  virtual bool IsPending(ObjectId object) const = 0;
  // Reads bytes of the object's text. May keep its file open until CloseFile().
  virtual Code ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) = 0;
  virtual void CloseFile() = 0;
};

// A process as it was when a cold sample was taken: its mappings at that moment, and the stack
// bytes that the kernel side copied.
class ColdView : public UnwindView {
 public:
  // `program` is null if nothing is known of it. All arguments must outlive the view.
  ColdView(const ColdSample& sample, const ProgramMappings* program, UnwindTableSource& tables)
      : sample_(sample), program_(program), tables_(tables) {}

  Found Find(Address pc) override;
  bool Read(Address address, std::span<std::byte> out) override;
  bool ReadCode(Address address, std::span<std::byte> out) override;
  bool IsCodeLate() const override { return is_code_late_; }

  // The frame for an address: an object frame, or the address itself if it is in no object.
  Frame FrameOf(Address pc) const;

  // True if a read failed because it went beyond the copied part of the stack.
  bool ran_out() const { return ran_out_; }

  // The object whose table was needed and is still being made; 0: none.
  ObjectId pending() const { return pending_; }

 private:
  const ObjectMapping* At(Address pc) const;
  bool LiesInAHole(uint64_t offset) const;  // of the copied stack

  const ColdSample& sample_;
  const ProgramMappings* program_;
  UnwindTableSource& tables_;
  std::vector<std::shared_ptr<const UnwindTable>> held_;  // for the life of the view
  ObjectId pending_;
  bool ran_out_ = false;
  bool is_code_late_ = false;
};

// A cold sample's user stack, leaf first.
struct ColdStack {
  // It ends where the table of this object was needed, which is still being made; 0: of none.
  ObjectId pending = ObjectId(0);
  std::vector<Frame> frames;
  StackEnd end = StackEnd::kNotReady;
  bool code_late = false;    // it ends where code did not come in time
  bool over_budget = false;  // truncated because it exceeded its UnwindBudget
};
ColdStack UnwindColdSample(const ColdSample& sample, const ProgramMappings* program,
                           UnwindTableSource& tables, const UnwindBudget& budget = {});

}  // namespace pyrometer
