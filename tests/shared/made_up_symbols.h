// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "symbolize/symbol_table_builder.h"

namespace pyrometer {

// The symbols of a file that does not exist.
class MadeUpSymbols {
 public:
  explicit MadeUpSymbols(const SymbolTableOptions& options = {})
      : bytes_(RoomFor(options)), builder_(ElfAddress(0), *bytes_) {}

  void Add(const DeclaredFunction& function, std::string_view name) {
    builder_.Add(function, static_cast<uint32_t>(AddName(name)));
  }

  // Returns where it is in the table of names, for stubs.
  uint64_t AddName(std::string_view name) {
    const uint64_t at = names_.size();
    names_.append(name).push_back('\0');
    return at;
  }

  void AddCode(std::span<const SymbolTableBuilder::KnownCode> code) {
    builder_.AddCode(code, [this](uint32_t offset) { return NameAt(offset); });
  }

  Result<SymbolTable> Build() {
    builder_.ReadNames([this](uint32_t offset) { return NameAt(offset); });
    ASSIGN_OR_RETURN(SymbolTableShape shape, std::move(builder_).Build());
    return SymbolTable::From(std::move(shape), std::move(bytes_));
  }

 private:
  Result<std::string_view> NameAt(uint32_t offset) const {
    return std::string_view(names_.data() + offset);
  }

  std::shared_ptr<SpilledBytes> bytes_;
  SymbolTableBuilder builder_;
  std::string names_;
};

}  // namespace pyrometer
