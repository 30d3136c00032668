// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/demangling.h"
#include "pyrometer/frame.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table_cache.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names frames of objects: by their demangled symbols and, where that is known, with what was
// inlined there and their places in the source; or as "libfoo.so+0x1234". Not thread-safe.
class ObjectNamer : public FrameNamer {
 public:
  struct Options {
    bool inlines = true;  // locations have the functions that were inlined there
    Demangling demangling = Demangling::kSimple;
  };

  // `source` and `counts` must outlive this.
  ObjectNamer(ObjectSource& source, SymbolTableCache::Budget budget, const Options& options,
              SymbolizerCounts& counts);

  // Returns the frames that got no name because their symbols could not be read, and now may be.
  // Only 65,536 such frames are remembered; others are named again once they have been out of use.
  std::vector<FrameRange> BeginWindow(uint32_t window, MonotonicTime end) override;

  // REQUIRES: frame.kind() == kObject. Cheapest if frames come in order: then each object's symbols
  // are needed once, and each function is demangled once.
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;

  // Forgets failures to read symbols, and objects that no location refers to any more.
  void EndWindow(uint32_t unused_since) override;

 private:
  struct KnownObject {
    ObjectDescription description;
    std::shared_ptr<const CodeObject> code;
  };

  const KnownObject* Find(ObjectId id, uint32_t window);
  const Line& LineFor(ObjectId id, const Symbol& symbol);
  std::vector<Line> LinesFor(const Line& own, const SymbolTable& table, ElfAddress address) const;

  ObjectSource& source_;
  SymbolTableCache tables_;
  const Options options_;
  SymbolizerCounts& counts_;
  absl::flat_hash_map<ObjectId, KnownObject> objects_;
  // Frames that got no name for want of a symbol table.
  absl::flat_hash_map<ObjectId, std::vector<FrameRange>> unnamed_;
  size_t unnamed_count_ = 0;
  uint32_t window_ = 0;
  // The function named last.
  ObjectId last_object_;
  ElfAddress last_start_;
  uint64_t last_size_ = 0;
  Line last_line_;
};

}  // namespace pyrometer
