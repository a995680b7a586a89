// Where a family's config.json keeps what others keep elsewhere: the `keys` of its row in families/table/forward.def.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "families/table/forward_row.h"
#include "model/config/architecture.h"

namespace wasmquant::model {

/// The fields of one row, read from one config.json.
class FamilyFacts {
 public:
  /// All must outlive this object.
  FamilyFacts(const families::forward::Row& row, const json::Value& config) noexcept : row_(row), config_(config) {}

  const families::forward::Row& row() const noexcept { return row_; }
  bool has(uint32_t trait) const noexcept { return row_.has(trait); }
  /// The value at the first of the field's keys that config.json has, of `usual` ("a|b") if the row does not name the field; else what
  /// the row gives. None: neither, or null.
  std::optional<double> number(std::string_view field, std::string_view usual = {}) const;
  /// number() as a size; `otherwise` if it is none.
  uint32_t count(std::string_view field, std::string_view usual, uint32_t otherwise = 0) const;
  std::string text(std::string_view field, std::string_view usual) const;
  bool flag(std::string_view field) const;

  /// Scales, caps, epsilon and the like. Errors: not-implemented at a key that is refused.
  Status read(Architecture& out) const;

 private:
  struct Source {
    std::string_view names, otherwise;
  };
  Source source_of(std::string_view field, std::string_view usual) const noexcept;
  const json::Value* find(std::string_view names) const noexcept;

  const families::forward::Row& row_;
  const json::Value& config_;
};

/// The first of "a|b" that config.json has; the first of them if it has none.
std::string key_of(const json::Value& config, std::string_view names);

}  // namespace wasmquant::model
