#include "compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/kernels.h"

namespace conformance {

using namespace wasmquant;

namespace {

std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string text_of(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t length : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + "]";
}

// One term: "rtol 1e-6", "atol 0.5", "atol 1e-6*max|x|", the number possibly followed by a remark in parentheses.
bool read_term(std::string term, Comparison& comparison) {
  const bool relative = term.starts_with("rtol ");
  if (!relative && !term.starts_with("atol ")) return false;
  const char* begin = term.c_str() + 5;
  char* end;
  const double value = std::strtod(begin, &end);
  if (end == begin) return false;
  const std::string_view rest(end);
  const bool of_max = rest == "*max|x|";
  if (!rest.empty() && !of_max && !(rest.starts_with(" (") && rest.ends_with(")"))) return false;
  (relative ? comparison.relative : of_max ? comparison.absolute_of_max : comparison.absolute) = value;
  return !(relative && of_max);
}

bool is_nan_code(Dtype dtype, double code) {
  const auto bits = static_cast<uint16_t>(static_cast<int32_t>(code));
  const auto byte = static_cast<uint8_t>(bits);
  float value;
  if (dtype == Dtype::float16)
    kernels::widen_f16({&bits, 1}, &value);
  else if (dtype == Dtype::bfloat16)
    kernels::widen_bf16({&bits, 1}, &value);
  else
    kernels::dequantize_fp8({&byte, 1}, 1.0f, dtype, &value);
  return std::isnan(value);
}

// Signed and unsigned readings of the same bits are one code.
bool same_code(Dtype dtype, double a, double b) {
  const uint32_t mask = (1u << info_of(dtype).bits) - 1;
  const bool same_bits = (static_cast<uint32_t>(static_cast<int32_t>(a)) & mask) ==
                         (static_cast<uint32_t>(static_cast<int32_t>(b)) & mask);
  return same_bits || (is_nan_code(dtype, a) && is_nan_code(dtype, b));
}

bool same_value(const Comparison& c, double found, double expected, double max_input) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (found == expected) return !c.sign_of_zero || found != 0 || std::signbit(found) == std::signbit(expected);
  if (c.exact || !std::isfinite(found) || !std::isfinite(expected)) return false;
  return std::abs(found - expected) <= c.absolute + c.absolute_of_max * max_input + c.relative * std::abs(expected);
}

}  // namespace

std::optional<Comparison> comparison_named(const std::string& text) {
  constexpr std::string_view kErrors = "errors ", kChoice = "; max must be a candidate with error <= min*(1+";
  if (const size_t choice = text.find(kChoice); choice != std::string::npos && text.starts_with(kErrors)) {
    auto comparison = comparison_named(text.substr(kErrors.size(), choice - kErrors.size()));
    const char* begin = text.c_str() + choice + kChoice.size();
    char* end;
    const double slack = std::strtod(begin, &end);
    if (!comparison || comparison->candidate_slack || end == begin || std::string_view(end) != ")") return std::nullopt;
    comparison->candidate_slack = slack;
    return comparison;
  }
  if (text == "exact") return Comparison{};
  Comparison comparison;
  comparison.sign_of_zero = false;
  if (text == "value (sign of zero free)") return comparison;
  comparison.exact = false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(", ", begin), text.size());
    if (!read_term(text.substr(begin, end - begin), comparison)) return std::nullopt;
    begin = end + 2;
  }
  return comparison;
}

std::optional<std::string> difference(const Comparison& comparison, const Produced& produced, const Tensor& expected,
                                      double max_input) {
  if (produced.values.size() != expected.values.size())
    return std::to_string(produced.values.size()) + " values, expected " + std::to_string(expected.values.size());
  if (produced.shape && *produced.shape != expected.shape)
    return "shape " + text_of(*produced.shape) + ", expected " + text_of(expected.shape);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double found = produced.values[i], wanted = expected.values[i];
    if (produced.codes_of ? same_code(*produced.codes_of, found, wanted)
                          : same_value(comparison, found, wanted, max_input))
      continue;
    return "element " + std::to_string(i) + " is " + text_of(found) + ", expected " + text_of(wanted);
  }
  return std::nullopt;
}

std::optional<std::string> choice_difference(double slack, const Outputs& outputs, const Tensor& expected_max,
                                             const Tensor& expected_errors) {
  const auto chosen = outputs.find("max"), tried = outputs.find("candidates");
  if (chosen == outputs.end() || tried == outputs.end() || chosen->second.values.size() != 1)
    return "no choice among candidates";
  const std::vector<double>& candidates = tried->second.values;
  const std::vector<double>& errors = expected_errors.values;
  if (candidates.size() != errors.size() || errors.empty() || expected_max.values.size() != 1)
    return std::to_string(candidates.size()) + " candidates, expected " + std::to_string(errors.size());
  const double max = chosen->second.values[0], wanted = expected_max.values[0];
  const auto at = std::find(candidates.begin(), candidates.end(), max);
  if (at == candidates.end()) return text_of(max) + " is no candidate";
  const auto is_wanted = [wanted](double c) { return std::abs(c - wanted) <= 1e-6 * std::abs(wanted); };
  if (std::none_of(candidates.begin(), candidates.end(), is_wanted))
    return text_of(wanted) + " is expected and was not tried";
  const double error = errors[static_cast<size_t>(at - candidates.begin())];
  const double least = *std::min_element(errors.begin(), errors.end());
  if (error <= least * (1 + slack)) return std::nullopt;
  return text_of(max) + " has error " + text_of(error) + ", the least is " + text_of(least);
}

}  // namespace conformance
