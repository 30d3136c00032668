// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "pyrometer/frame.h"
#include "pyrometer/naming.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table_cache.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names frames of objects: by their symbols, or as "libfoo.so+0x1234". Not thread-safe.
class ObjectNamer : public FrameNamer {
 public:
  // `source` and `counts` must outlive this.
  ObjectNamer(ObjectSource& source, SymbolTableCache::Budget budget, const Naming& naming,
              SymbolizerCounts& counts);

  // Returns the frames that got no name because their symbols could not be read, and now may be,
  // and those of objects of which more is known.
  // Only 65,536 such frames are remembered; others are named again once they have been out of use.
  std::vector<FrameRange> BeginWindow(uint32_t window) override;

  // REQUIRES: frame.kind() == kObject. Cheapest if frames come in order: then each object's symbols
  // are needed once, and each function is demangled once.
  LocationRef Name(Frame frame, const FrameOwner& owner, uint32_t window) override;

  // Forgets failures to read symbols, and objects that no location refers to any more.
  void EndWindow(uint32_t unused_since) override;

 private:
  struct KnownObject {
    ObjectDescription description;
    std::shared_ptr<const CodeObject> code;
    // Until the window ends; nothing: not asked for in it.
    std::optional<SourceAnswer> sources{};
  };

  void ForgetIfWithoutFunctions(ObjectId object);
  KnownObject* Find(ObjectId id, uint32_t window);
  const SourceAnswer& SourcesIn(ObjectId id, KnownObject& object);
  std::vector<Line> LinesFor(ObjectId id, const std::optional<Symbol>& symbol,
                             const std::vector<SourceFrame>& frames);
  const Line& LineFor(ObjectId id, const Symbol& symbol);

  ObjectSource& source_;
  SymbolTableCache tables_;
  const Naming naming_;
  SymbolizerCounts& counts_;
  absl::flat_hash_map<ObjectId, KnownObject> objects_;
  // Frames that got no name for want of a symbol table.
  absl::flat_hash_map<ObjectId, std::vector<FrameRange>> unnamed_;
  size_t unnamed_count_ = 0;
  // Objects whose source lines were not there yet when frames in them were named.
  absl::flat_hash_set<ObjectId> awaited_;
  uint32_t window_ = 0;
  // The function named last.
  ObjectId last_object_;
  ElfAddress last_start_;
  uint64_t last_size_ = 0;
  Line last_line_;
};

}  // namespace pyrometer
