// Comparisons that golden cases name: bits, codes, values with tolerances, losses.
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

// "at least P% of entries within A", with or without ", and output error <= params.loss * F".
bool read_share(const std::string& text, Comparison& comparison) {
  double percent, factor;
  int end = 0;
  if (std::sscanf(text.c_str(), "at least %lf%% of entries within %lf%n", &percent, &comparison.absolute, &end) != 2)
    return false;
  comparison.share = percent / 100;
  if (static_cast<size_t>(end) == text.size()) return true;
  const char* rest = text.c_str() + end;
  if (std::sscanf(rest, ", and output error <= params.loss * %lf%n", &factor, &end) != 1 || rest[end] != 0)
    return false;
  comparison.loss_factor = factor;
  return true;
}

bool is_nan_code(Dtype dtype, double code) {
  const FloatFormat format = float_format_of(dtype);
  return format.is_nan(static_cast<uint32_t>(static_cast<int32_t>(code)) & ((1u << format.bits()) - 1));
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
  // Remarks that allow more than the value itself, or say what the value is anyway.
  for (const char* values : {"value (sign of zero free)", "value (sign of zero free), NaN and Inf in place",
                             "value; rows 0-2 may also use twice the scale (float32 log2 rounding in Quark)"})
    if (text == values) return comparison;
  comparison.exact = false;
  if (read_share(text, comparison)) return comparison;
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
  size_t misses = 0;
  std::string first;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double found = produced.values[i], wanted = expected.values[i];
    if (produced.codes_of ? same_code(*produced.codes_of, found, wanted)
                          : same_value(comparison, found, wanted, max_input))
      continue;
    if (misses++ == 0)
      first = "element " + std::to_string(i) + " is " + text_of(found) + ", expected " + text_of(wanted);
  }
  const auto count = static_cast<double>(expected.values.size());
  if (count - static_cast<double>(misses) >= comparison.share * count) return std::nullopt;
  return comparison.share == 1 ? first : std::to_string(misses) + " entries differ; " + first;
}

std::optional<std::string> loss_difference(const Comparison& comparison, const Produced& produced, double loss) {
  if (comparison.loss_factor == 0) return std::nullopt;
  if (!produced.output_error) return "no output error was measured";
  if (*produced.output_error <= comparison.loss_factor * loss) return std::nullopt;
  return "output error " + text_of(*produced.output_error) + ", the reference has " + text_of(loss);
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
