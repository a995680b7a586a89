// One case of the dialects' manifests (aihwkit, brevitas): settings in the dialect's own words, and what comes out.
//   {"id", "kind", "config": {...}, "input": key or "inputs": {role: key}, "out": {role: key | number | bool},
//   "compare"}
// compare: exact · close (rtol 2e-4, atol 2e-5) · loss (the result of a search: no greater squared error)
// The sign of zero is free, and scales and zero points broadcast.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/spec/spec.h"
#include "core/json.h"
#include "core/result.h"
#include "observers/observer.h"
#include "tensors.h"

namespace conformance {

using wasmquant::Result;
using wasmquant::Status;

class DialectCase {
 public:
  /// `source` is the manifest's: which tool, which version.
  DialectCase(const wasmquant::json::Value& manifest_case, std::string file, std::string source, TensorFiles& tensors)
      : json_(manifest_case), file_(std::move(file)), source_(std::move(source)), tensors_(tensors) {}

  std::string kind() const;
  const std::string& source() const { return source_; }
  const wasmquant::json::Value* find(std::string_view name) const { return json_.find(name); }
  const wasmquant::json::Value* expected(std::string_view role) const;
  std::string compare() const;

  /// The tensor that a JSON value is the key of; `name` is for the error.
  Result<Tensor> read(const wasmquant::json::Value* key, std::string_view name) const;
  /// The same of a member.
  Result<Tensor> tensor(std::string_view member) const;
  Result<Tensor> input(std::string_view role) const;
  /// A tensor, or a number as a tensor of one.
  Result<Tensor> out(std::string_view role) const;

  /// What differs from output `role` by more than that, or empty. Roles that the case does not have agree.
  Result<std::string> difference(std::string_view role, const std::vector<double>& values, double relative = 0,
                                 double absolute = 0) const;
  /// The same by the case's `compare`: exact or close.
  Result<std::string> difference_by_rule(std::string_view role, const std::vector<double>& values) const;

 private:
  const wasmquant::json::Value& json_;
  std::string file_, source_;
  TensorFiles& tensors_;
};

/// Batch `index` of a tensor whose first dimension counts batches.
Tensor batch_of(const Tensor& batches, size_t index);
std::vector<double> doubles(const std::vector<float>& values);
/// (y - x)^2 summed in float64.
double squared_error_of(const std::vector<float>& x, const std::vector<float>& y);
/// Values of codes, for a tensor that may have another shape than the observed one.
std::vector<float> fake_quantized(const wasmquant::Observation& found, const std::vector<float>& x,
                                  const std::vector<uint64_t>& shape);
/// Codes of integers of up to 16 bits, of a tensor of the observed shape.
std::vector<double> codes_of(const wasmquant::Observation& found, const std::vector<float>& x);
/// intN or uintN, if the library has it.
Result<wasmquant::Dtype> integer_dtype(bool is_signed, int64_t bits);

/// Runs the case: empty, or the first difference. not-implemented: the case is skipped.
using DialectOp = Result<std::string> (*)(const DialectCase&);
Result<std::string> run_dialect_case(const DialectCase& c);

// ---- aihwkit_ops.cpp
Result<std::string> aihwkit_weight(const DialectCase& c);
Result<std::string> aihwkit_sequence(const DialectCase& c);

// ---- aihwkit_resolution.cpp
Result<std::string> aihwkit_resolution(const DialectCase& c);

// ---- brevitas_ops.cpp
Result<std::string> brevitas_weight(const DialectCase& c);
Result<std::string> brevitas_blocks(const DialectCase& c);
Result<std::string> brevitas_activation(const DialectCase& c);
Result<std::string> brevitas_formula(const DialectCase& c);

// ---- brevitas_layer_ops.cpp
Result<std::string> brevitas_layer(const DialectCase& c);
Result<std::string> brevitas_gptq(const DialectCase& c);
Result<std::string> brevitas_gpfq(const DialectCase& c);
Result<std::string> brevitas_equalization(const DialectCase& c);
Result<std::string> brevitas_smooth_quant(const DialectCase& c);
Result<std::string> brevitas_bias_correction(const DialectCase& c);

}  // namespace conformance

/// Returns from the op with the first difference.
#define AGREE(expression)                        \
  do {                                           \
    auto text_ = (expression);                   \
    if (!text_) return std::move(text_.error()); \
    if (!text_->empty()) return text_;           \
  } while (false)
