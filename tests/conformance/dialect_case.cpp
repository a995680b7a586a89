// Golden cases of Brevitas's and aihwkit's arithmetic.
#include "dialect_case.h"

#include "compare.h"
#include "golden_case.h"
#include "quantize/quantize.h"

namespace conformance {

using namespace wasmquant;

std::string DialectCase::kind() const {
  const json::Value* kind = json_.find("kind");
  return kind && kind->is_string() ? std::string(kind->as_string()) : "";
}

const json::Value* DialectCase::expected(std::string_view role) const {
  const json::Value* out = json_.find("out");
  return out ? out->find(role) : nullptr;
}

std::string DialectCase::compare() const {
  const json::Value* rule = json_.find("compare");
  return rule && rule->is_string() ? std::string(rule->as_string()) : "close";
}

Result<Tensor> DialectCase::read(const json::Value* key, std::string_view name) const {
  if (!key || !key->is_string()) return not_yet("a case without tensor " + std::string(name));
  return tensors_.read(file_, std::string(key->as_string()));
}

Result<Tensor> DialectCase::tensor(std::string_view member) const { return read(json_.find(member), member); }

Result<Tensor> DialectCase::input(std::string_view role) const {
  const json::Value* inputs = json_.find("inputs");
  return read(inputs ? inputs->find(role) : nullptr, role);
}

Result<Tensor> DialectCase::out(std::string_view role) const {
  const json::Value* value = expected(role);
  if (value && value->is_number()) return Tensor{StorageDtype::F32, {1}, {value->as_number()}};
  return read(value, role);
}

Result<std::string> DialectCase::difference(std::string_view role, const std::vector<double>& values, double relative,
                                            double absolute) const {
  if (!expected(role)) return std::string();
  TRY(wanted, out(role));
  Comparison comparison;
  comparison.exact = comparison.sign_of_zero = false;
  comparison.relative = relative;
  comparison.absolute = absolute;
  std::vector<double> found = values;
  // One number stands for all. Copies: assign() may free what it was given.
  if (const double only = wanted.values.size() == 1 ? wanted.values[0] : 0; wanted.values.size() == 1)
    wanted.values.assign(found.size(), only);
  if (const double only = found.size() == 1 ? found[0] : 0; found.size() == 1) found.assign(wanted.values.size(), only);
  const auto text = conformance::difference(comparison, Produced{found, {}, {}}, wanted, 0);
  return text ? std::string(role) + ": " + *text : std::string();
}

Result<std::string> DialectCase::difference_by_rule(std::string_view role, const std::vector<double>& values) const {
  if (compare() == "exact") return difference(role, values);
  if (compare() == "close") return difference(role, values, 2e-4, 2e-5);
  return not_yet("comparison " + compare());
}

Tensor batch_of(const Tensor& batches, size_t index) {
  Tensor batch{batches.dtype, {batches.shape.begin() + 1, batches.shape.end()}, {}};
  const size_t count = batches.values.size() / static_cast<size_t>(batches.shape[0]);
  const auto begin = batches.values.begin() + static_cast<ptrdiff_t>(index * count);
  batch.values.assign(begin, begin + static_cast<ptrdiff_t>(count));
  return batch;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

double squared_error_of(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (double{y[i]} - x[i]) * (double{y[i]} - x[i]);
  return sum;
}

std::vector<float> fake_quantized(const Observation& found, const std::vector<float>& x,
                                  const std::vector<uint64_t>& shape) {
  std::vector<float> y(x.size());
  const Result<Granularity> g = granularity_of(shape, found.spec);
  if (g) fake_quantize(*g, found.spec, found.qparams, x, 0, y.data());
  return y;
}

std::vector<double> codes_of(const Observation& found, const std::vector<float>& x) {
  const DtypeInfo& dtype = info_of(found.spec.dtype);
  const uint32_t width = code_bytes_of(found.spec);
  std::vector<uint8_t> bytes(x.size() * width);
  quantize(found.granularity, found.spec, found.qparams, kernels::Path::real, x, 0, bytes.data());
  std::vector<double> codes;
  for (size_t i = 0; i < bytes.size(); i += width) {
    const int32_t code = width == 1 ? bytes[i] : bytes[i] | bytes[i + 1] << 8;
    codes.push_back(dtype.is_signed ? (width == 1 ? static_cast<int8_t>(code) : static_cast<int16_t>(code)) : code);
  }
  return codes;
}

Result<Dtype> integer_dtype(bool is_signed, int64_t bits) {
  const std::string name = (is_signed ? "int" : "uint") + std::to_string(bits);
  if (const auto dtype = dtype_named(name)) return *dtype;
  return not_yet("dtype " + name);
}

Result<std::string> run_dialect_case(const DialectCase& c) {
  struct Row {
    std::string_view tool, kind;
    DialectOp op;
  };
  constexpr Row kOps[] = {
      {"aihwkit", "weight", aihwkit_weight},
      {"aihwkit", "sequence", aihwkit_sequence},
      {"aihwkit", "resolution", aihwkit_resolution},
      {"brevitas", "weight", brevitas_weight},
      {"brevitas", "mx", brevitas_blocks},
      {"brevitas", "activation", brevitas_activation},
      {"brevitas", "activation_formula", brevitas_formula},
      {"brevitas", "layer", brevitas_layer},
      {"brevitas", "gptq", brevitas_gptq},
      {"brevitas", "gpfq", brevitas_gpfq},
      {"brevitas", "cle", brevitas_equalization},
      {"brevitas", "smoothquant", brevitas_smooth_quant},
      {"brevitas", "bias_correction", brevitas_bias_correction},
  };
  for (const Row& row : kOps)
    if (row.kind == c.kind() && c.source().find(row.tool) != std::string::npos) return row.op(c);
  return not_yet("kind " + c.kind());
}

}  // namespace conformance
