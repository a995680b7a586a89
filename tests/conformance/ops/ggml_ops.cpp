#include "ops/ggml_ops.h"

#include <bit>
#include <cmath>

#include "golden_case.h"
#include "kernels/ggml/ggml_blocks.h"

namespace conformance {

using namespace wasmquant;

namespace {

std::string text_of(const json::Value& object, std::string_view name) {
  const json::Value* member = object.find(name);
  return member && member->is_string() ? member->as_string() : "";
}

std::string difference_of_bytes(const std::vector<uint8_t>& produced, const std::vector<double>& expected,
                                const GgmlTypeInfo& info) {
  if (produced.size() != expected.size())
    return std::to_string(produced.size()) + " bytes, expected " + std::to_string(expected.size());
  for (size_t i = 0; i < produced.size(); ++i)
    if (produced[i] != expected[i])
      return "block " + std::to_string(i / info.block_bytes) + ", byte " + std::to_string(i % info.block_bytes) + ": " +
             std::to_string(produced[i]) + ", expected " + std::to_string(static_cast<int>(expected[i]));
  return "";
}

std::string difference_of_values(const std::vector<float>& produced, const std::vector<double>& expected) {
  if (produced.size() != expected.size()) return "a wrong number of values";
  for (size_t i = 0; i < produced.size(); ++i) {
    const auto value = static_cast<float>(expected[i]);
    const bool is_same = std::isnan(value) ? std::isnan(produced[i])
                                           : std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(produced[i]);
    if (!is_same)
      return "value " + std::to_string(i) + ": " + std::to_string(produced[i]) + ", expected " + std::to_string(value);
  }
  return "";
}

}  // namespace

Result<std::string> run_ggml_case(const json::Value& c, const std::string& file, TensorFiles& tensors) {
  const json::Value* id = c.find("type_id");
  const auto type = id && id->is_number() ? ggml_type_of(static_cast<uint32_t>(id->as_integer())) : std::nullopt;
  if (!type || !info_of(*type).can_quantize()) return not_yet("quantizing to " + text_of(c, "type"));
  if (text_of(c, "compare") != "exact") return not_yet("comparison \"" + text_of(c, "compare") + "\"");
  const GgmlTypeInfo& info = info_of(*type);
  TRY(input, tensors.read(file, text_of(c, "input")));
  TRY(expected, tensors.read(file, text_of(c, "bytes")));
  if (input.shape.empty() || input.shape.back() % info.block != 0)
    return Error{ErrorCode::argument_invalid, file, "rows of the input are no whole blocks"};

  const std::vector<float> x = input.as_floats();
  const uint64_t columns = input.shape.back();
  std::vector<float> importance;
  if (!text_of(c, "importance").empty()) {
    TRY(given, tensors.read(file, text_of(c, "importance")));
    importance = given.as_floats();
    if (importance.size() != columns) return Error{ErrorCode::argument_invalid, file, "one importance per column"};
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(info.bytes_of(x.size())));
  kernels::quantize_blocks(*type, x.data(), x.size() / columns, columns,
                           importance.empty() ? nullptr : importance.data(), bytes.data());
  std::string difference = difference_of_bytes(bytes, expected.values, info);
  if (!difference.empty() || text_of(c, "values").empty()) return difference;
  TRY(values, tensors.read(file, text_of(c, "values")));
  std::vector<float> y(x.size());
  kernels::dequantize_blocks(*type, bytes.data(), y.size(), y.data());
  return difference_of_values(y, values.values);
}

}  // namespace conformance
