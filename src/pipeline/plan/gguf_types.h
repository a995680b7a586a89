// Which of a GGUF config's patterns chooses a tensor's type, and why a tensor has the type it has.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "config/dialects/gguf_config.h"
#include "config/match/name_match.h"
#include "gguf_conversion/conversion.h"
#include "gguf_conversion/recipe.h"
#include "pipeline/plan/output_planner.h"

namespace wasmquant {

struct TypePattern {
  NamePattern pattern;
  std::string text;
  std::string where;             // JSON pointer
  std::optional<GgmlType> type;  // empty: excluded
  bool is_used = false;          // matched a layer
};

class TypePatterns {
 public:
  explicit TypePatterns(const config::GgufConfig& config);

  /// The first that matches the layer's name in the model ("": none) or in GGUF; all that match count as used.
  const TypePattern* find(std::string_view source, std::string_view name);
  /// Warns of those that match nothing. A head that is the embedding has no tensor of its own to exclude.
  void report(bool has_head, List<Diagnostic>& diagnostics) const;

 private:
  List<TypePattern> all_;
};

Reason reason_of(const conversion::TypeChoice& choice, const TypePattern* pattern, GgmlType type,
                 const conversion::ConvertedTensor& tensor, std::string_view recipe);

/// Tensors whose rows are not a multiple of the wanted type's block.
class TypeFallbacks {
 public:
  void add(const conversion::ConvertedTensor& tensor, const conversion::TypeChoice& choice, std::string_view reason);
  /// `all`: the number of tensors of the plan.
  void report(uint64_t all, List<Diagnostic>& diagnostics) const;

 private:
  CountWithExample tensors_;
  std::string reason_;  // of the first
  int64_t bytes_ = 0;
};

}  // namespace wasmquant
