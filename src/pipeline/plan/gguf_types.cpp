#include "pipeline/plan/gguf_types.h"

#include "config/match/layer_type.h"
#include "core/message.h"

namespace wasmquant {

using conversion::ConvertedTensor;
using conversion::TypeChoice;
using conversion::TypeReason;

TypePatterns::TypePatterns(const config::GgufConfig& config) {
  for (const std::string& name : config.exclude)
    all_.push_back({NamePattern(name), name, text_of("/exclude/{}", all_.size()), std::nullopt});
  for (const auto& [name, type] : config.layers)
    all_.push_back({NamePattern(name), name, text_of("/layers/{}", name), type});
}

const TypePattern* TypePatterns::find(std::string_view source, std::string_view name) {
  const TypePattern* found = nullptr;
  for (TypePattern& each : all_) {
    bool matches = false;
    for (const std::string_view layer : {source, name})
      matches |= !layer.empty() && (each.pattern.matches(layer) || each.pattern.matches(layer_name_of(layer).layer));
    if (!matches) continue;
    each.is_used = true;
    if (found == nullptr) found = &each;
  }
  return found;
}

void TypePatterns::report(bool has_head, List<Diagnostic>& diagnostics) const {
  for (const TypePattern& each : all_) {
    if (each.is_used) continue;
    if (!has_head && !each.type &&
        (each.pattern.matches("lm_head") || each.pattern.matches("output.weight") || each.pattern.matches("output")))
      continue;
    diagnostics.push_back({Severity::warning, "pattern-unused", each.where,
                           text_of("{q} matches no layer of this model", each.text), ""});
  }
}

Reason reason_of(const TypeChoice& choice, const TypePattern* pattern, GgmlType type, const ConvertedTensor& tensor,
                 std::string_view recipe) {
  const std::string_view name = info_of(type).name;
  if (pattern != nullptr && !pattern->type)
    return {Rule::excluded, "/exclude", text_of("excluded by {q}", pattern->text)};
  switch (choice.reason) {
    case TypeReason::kept:
      return {Rule::not_quantizable, "", "vectors, norms and other small tensors keep their type"};
    case TypeReason::chosen:
      if (pattern == nullptr) return {Rule::layer_glob, "/output_type", "the config's type for this tensor"};
      return {Rule::layer_glob, pattern->where, text_of("pattern {q} gives {}", pattern->text, name)};
    case TypeReason::rule:
      return {Rule::global, "/recipe", text_of("{} gives this tensor {}", recipe, name)};
    case TypeReason::fallback:
      return {Rule::global, "/recipe",
              text_of("rows of {} are not a multiple of {} blocks of {}, so {}", tensor.shape.back(),
                      info_of(choice.wanted).name, info_of(choice.wanted).block + 0, name)};
    case TypeReason::recipe:
      break;
  }
  return {Rule::global, "/recipe", text_of("recipe {}", recipe)};
}

void TypeFallbacks::add(const ConvertedTensor& tensor, const TypeChoice& choice, std::string_view reason) {
  uint64_t elements = 1;
  for (const uint64_t d : tensor.shape) elements *= d;
  const auto bytes_in = [&](GgmlType type) { return static_cast<int64_t>(info_of(type).bytes_of(elements)); };
  if (tensors_.count == 0) reason_ = reason;
  tensors_.add(tensor.name);
  bytes_ += bytes_in(choice.type) - bytes_in(choice.wanted);
}

void TypeFallbacks::report(uint64_t all, List<Diagnostic>& diagnostics) const {
  if (tensors_.count == 0) return;
  diagnostics.push_back({Severity::note, "type-fallback", tensors_.first,
                         text_of("{}; {} of {} tensors have another type for that reason, which adds {} bytes", reason_,
                                 tensors_.count, all, bytes_),
                         ""});
}

}  // namespace wasmquant
