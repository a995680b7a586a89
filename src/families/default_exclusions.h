// The layers that presets leave alone unless a rule of the config names them: default_exclusions.def.
#pragma once
#include <cstdint>
#include <string_view>

#include "families/model_family.h"

namespace wasmquant::families {

struct DefaultExclusion {
  enum class Match : uint8_t { part, ending, type, experts, family, layers };
  std::string_view id;  // "router"
  Match match;
  std::string_view words;  // separated by spaces
  std::string_view text;   // why, as a noun phrase and a reason
};

/// Whether a pattern of a config names what the row is about: one of the row's words stands in it.
bool names_row(const DefaultExclusion& row, std::string_view pattern) noexcept;

class DefaultExclusions {
 public:
  /// Rows that do not always apply. input_major: also rows of a family, which formats of plain values do not need.
  struct Rows {
    bool tower = true, expert = true, input_major = true;
  };

  /// Towers are left of models that generate text. The family must outlive this.
  DefaultExclusions(const ModelFamily& family, Rows rows) noexcept : family_(family), rows_(rows) {
    rows_.tower &= family.generates();
  }

  /// The row that leaves a layer alone, or null. `type`: its class, "Linear", "Conv2d", ...
  const DefaultExclusion* find(std::string_view layer, std::string_view type) const noexcept;

 private:
  bool is_behind_last(std::string_view layer) const noexcept;

  bool applies(const DefaultExclusion& row) const noexcept;

  const ModelFamily& family_;
  Rows rows_;
};

/// Whether a part of the name is one that the row `tower` lists: its position behind that part, or npos.
size_t tower_end(std::string_view layer) noexcept;

}  // namespace wasmquant::families
