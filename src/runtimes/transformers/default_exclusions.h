// The layers that presets exclude unless a rule of the config names them: default_exclusions.def.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/list.h"
#include "families/model_family.h"
#include "runtimes/transformers/conversions.h"

namespace wasmquant::transformers {

/// One row of default_exclusions.def.
struct DefaultExclusion {
  enum class Match : uint8_t { part, ending, type, experts, family, layers, converted };
  std::string_view id;  // "router"
  Match match;
  std::string_view words;  // separated by spaces
  std::string_view text;   // the reason, as a noun phrase and a clause
};

/// Whether a pattern of a config names the row's subject: it contains one of the row's words.
bool names_row(const DefaultExclusion& row, std::string_view pattern) noexcept;

/// The rows that apply to one model.
class DefaultExclusions {
 public:
  /// Rows that apply conditionally. input_major: also rows of a family and of conversions, which formats of plain values
  /// do not need. split: layers that transformers splits. expert: why experts stay as they are; empty if they do not.
  /// Borrowed.
  struct Rows {
    bool tower = true, input_major = true, split = true;
    std::string_view expert{};
  };

  /// Towers are excluded only from models that generate text. The family must outlive this.
  DefaultExclusions(const ModelFamily& family, Rows rows);

  /// The row that excludes a layer, or null. `type`: its class, "Linear", "Conv2d", ...
  const DefaultExclusion* find(std::string_view layer, std::string_view type) const;

 private:
  bool is_behind_last(std::string_view layer) const noexcept;

  bool applies(const DefaultExclusion& row) const noexcept;
  const DefaultExclusion* row_of_conversion(std::string_view layer) const;

  const ModelFamily& family_;
  Rows rows_;
  Conversions conversions_;
  DefaultExclusion expert_{};         // the row with the plan's reason
  List<DefaultExclusion> converted_;  // rows of conversions, parallel to conversions_.rows(); words: their sources
};

/// The position after the name component listed in row `tower`, or npos.
size_t tower_end(std::string_view layer) noexcept;

}  // namespace wasmquant::transformers
