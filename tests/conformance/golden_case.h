// One case of a manifest: an op with parameters, input tensors and expected tensors, and how to compare them.
//   {"id", "file": tensors, "op", "params": {...}, "inputs": {role: key}, "expected": {role: key}, "compare"}
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/spec/spec.h"
#include "core/json.h"
#include "tensors.h"

namespace conformance {

using wasmquant::Result;
using wasmquant::Status;

/// What the library made of one role. Codes of floats are compared as codes, but any NaN is as good as another.
struct Produced {
  std::vector<double> values;
  std::optional<std::vector<uint64_t>> shape;  // compared when given
  std::optional<wasmquant::Dtype> codes_of;    // a float dtype whose codes `values` are
  std::optional<double> output_error = {};     // of a layer with these weights, when the op measures it
};
using Outputs = std::map<std::string, Produced, std::less<>>;

/// Reads what an op needs out of a case. An Error with code not-implemented means: the library has no such thing yet
/// (the case is skipped); any other error is the case's failure.
class GoldenCase {
 public:
  GoldenCase(const wasmquant::json::Value& manifest_case, std::string file, TensorFiles& tensors)
      : json_(manifest_case), file_(std::move(file)), tensors_(tensors) {}

  std::string id() const { return text("id"); }
  std::string op() const { return text("op"); }
  std::string compare() const { return text("compare"); }
  /// (role, tensor key) pairs in the manifest's order; empty unless all keys are strings.
  std::vector<std::pair<std::string, std::string>> inputs() const { return roles("inputs"); }
  std::vector<std::pair<std::string, std::string>> expected() const { return roles("expected"); }
  bool expects(std::string_view role) const;

  Result<Tensor> input(std::string_view role) const;
  Result<Tensor> tensor(const std::string& key) const { return tensors_.read(file_, key); }

  const wasmquant::json::Value* param(std::string_view name) const;
  /// not-implemented unless every parameter is one of these: a parameter that is not understood may change everything.
  Status allow_params(std::set<std::string_view> names) const;
  Result<std::string> word(std::string_view name) const;
  Result<double> number(std::string_view name) const;
  Result<wasmquant::Dtype> dtype() const;
  /// dtype, symmetric, round_method, scale_type, zero_point_type, is_dynamic, qscheme, ch_axis, group_size.
  Result<wasmquant::QuantizationSpec> spec() const;

 private:
  std::string text(std::string_view name) const;
  std::vector<std::pair<std::string, std::string>> roles(std::string_view name) const;

  const wasmquant::json::Value& json_;
  std::string file_;
  TensorFiles& tensors_;
};

/// The error that makes a case skipped.
wasmquant::Error not_yet(std::string what);

}  // namespace conformance
