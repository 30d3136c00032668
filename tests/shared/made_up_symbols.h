// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolize/symbol_table_builder.h"

namespace pyrometer {

// The symbols of a file that does not exist.
class MadeUpSymbols {
 public:
  explicit MadeUpSymbols(SymbolTableOptions options = {})
      : builder_(ElfAddress(0), std::move(options)) {}

  void Add(const DeclaredFunction& function, std::string_view name) {
    builder_.Add(function, static_cast<uint32_t>(names_.size()));
    names_.append(name).push_back('\0');
  }

  // Of the function that it calls.
  void AddStub(const CodeRange& range, std::string_view name) {
    stubs_.push_back({.range = range, .function = static_cast<uint32_t>(names_.size())});
    names_.append(name).push_back('\0');
  }

  void AddCode(std::span<const SymbolTableBuilder::KnownCode> code) { builder_.AddCode(code); }

  bool AddSource(const CodeRange& range, const SourceRecord& record) {
    return builder_.AddSource(range, record);
  }
  void PutText(uint32_t number, std::string_view text) { builder_.PutText(number, text); }

  Result<SymbolTable> Build() {
    const auto read = [this](uint32_t offset) -> Result<std::string_view> {
      return std::string_view(names_.data() + offset);
    };
    builder_.ReadNames(read);
    builder_.AddStubs(stubs_, read);
    return std::move(builder_).Build();
  }

 private:
  SymbolTableBuilder builder_;
  std::vector<SymbolTableBuilder::Stub> stubs_;
  std::string names_;
};

}  // namespace pyrometer
