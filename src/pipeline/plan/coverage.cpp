#include "pipeline/plan/coverage.h"

#include <algorithm>

#include "core/error.h"
#include "core/order.h"

namespace wasmquant {
namespace {

uint64_t elements_of(const std::vector<uint64_t>& shape) {
  uint64_t elements = 1;
  for (const uint64_t d : shape) elements *= d;
  return elements;
}

}  // namespace

bool is_quantized(const PlannedTensor& planned) {
  if (planned.outputs().empty() || planned.is_left) return false;
  const StorageDtypeInfo& stored = info_of(planned.outputs().front().dtype);
  if (stored.is_ggml()) return stored.block > 1;
  return !planned.task.is_copy && planned.task.layout->codes != CodeStorage::ggml_rows;
}

std::string percent(uint64_t part, uint64_t whole) {
  const uint64_t tenths =
      whole == 0 ? 0 : static_cast<uint64_t>(1000.0 * static_cast<double>(part) / static_cast<double>(whole) + 0.5);
  return text_of("{}.{} %", tenths / 10, tenths % 10);
}

Coverage coverage_of(const Plan& plan, const ModelIndex& given) {
  const ModelIndex& model = plan.model ? *plan.model : given;
  Coverage coverage;
  for (const PlannedTensor& planned : plan.tensors) {
    if (!planned.name.empty()) continue;  // made from a tensor that is already counted
    const StoredTensor& stored = model.tensors()[planned.tensor].stored;
    const uint64_t parameters = elements_of(stored.shape), bytes = stored.end - stored.begin;
    coverage.parameters += parameters;
    coverage.bytes += bytes;
    if (is_quantized(planned)) {
      coverage.quantized_parameters += parameters;
      coverage.quantized_bytes += bytes;
      continue;
    }
    auto left = std::find_if(coverage.left.begin(), coverage.left.end(),
                             [&](const Coverage::Left& row) { return row.text == planned.reason->text; });
    if (left == coverage.left.end()) {
      coverage.left.push_back({name_of(planned.reason->rule), planned.reason->text, stored.name});
      left = coverage.left.end() - 1;
    }
    ++left->tensors;
    left->parameters += parameters;
    left->bytes += bytes;
  }
  List<Coverage::Left> sorted;
  const auto is_larger = [&](uint32_t a, uint32_t b) { return coverage.left[a].bytes > coverage.left[b].bytes; };
  for (const uint32_t row : sorted_order(coverage.left.size(), is_larger))
    sorted.push_back(std::move(coverage.left[row]));
  coverage.left = std::move(sorted);
  return coverage;
}

json::Value to_json(const Coverage& coverage) {
  json::Array left;
  for (const Coverage::Left& row : coverage.left) {
    json::Value& out = left.emplace_back();
    out.set("rule", row.rule);
    out.set("text", row.text);
    out.set("tensors", row.tensors);
    out.set("parameters", row.parameters);
    out.set("bytes", row.bytes);
  }
  json::Value out;
  out.set("parameters", coverage.parameters);
  out.set("quantizedParameters", coverage.quantized_parameters);
  out.set("bytes", coverage.bytes);
  out.set("quantizedBytes", coverage.quantized_bytes);
  out.set("left", std::move(left));
  return out;
}

Diagnostic nothing_quantized_error(const Coverage& coverage, std::string_view hint) {
  Diagnostic error{Severity::error, ErrorCode::nothing_quantized, "", "no part of this model would be quantized",
                   std::string(hint)};
  if (hint.empty())
    error.hint = "plan shows why each tensor is left: name layers in the config, or use another preset or format";
  if (coverage.left.empty()) {
    error.message += ": it has no tensors";
    return error;
  }
  const Coverage::Left& largest = coverage.left[0];
  error.where = largest.first;
  error.message +=
      text_of("; {} of the parameters are left: {}", percent(largest.parameters, coverage.parameters), largest.text);
  return error;
}

Diagnostic low_coverage_warning(const Coverage& coverage, std::string_view hint) {
  Diagnostic warning{
      Severity::warning, "low-coverage", "",
      text_of("only {} of the parameters are quantized", percent(coverage.quantized_parameters, coverage.parameters)),
      std::string(hint)};
  if (!coverage.left.empty()) {
    const Coverage::Left& largest = coverage.left[0];
    warning.where = largest.first;
    warning.message += text_of("; {} are left: {}", percent(largest.parameters, coverage.parameters), largest.text);
  }
  return warning;
}

}  // namespace wasmquant
