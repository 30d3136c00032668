// SPDX-License-Identifier: Apache-2.0
// What passes between the indexer and its sandboxed process about jitdumps; see artifact_codec.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "indexer/flat_value.h"
#include "pyrometer/result.h"
#include "symbolize/jit_dump_records.h"

namespace pyrometer {

void Encode(const JitDumpPart& part, FlatWriter& out);
Result<JitDumpPart> DecodeJitDumpPart(FlatReader& in);

void Encode(const JitDumpEnd& end, FlatWriter& out);
Result<JitDumpEnd> DecodeJitDumpEnd(FlatReader& in);

void Encode(const JitCode& code, FlatWriter& out);

// Pieces of code as they come from the other process: their bytes may be cut anywhere.
class ForeignJitCode {
 public:
  explicit ForeignJitCode(OnJitCode on_code) : on_code_(on_code) {}

  // Errors: kCrashed if they make no sense.
  Result<void> Put(std::span<const std::byte> bytes);

  // True if nothing is missing.
  bool AtEnd() const { return bytes_.empty(); }

 private:
  OnJitCode on_code_;
  std::vector<std::byte> bytes_;  // of one that is not complete
};

}  // namespace pyrometer
