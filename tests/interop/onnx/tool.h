// What the parts of the ONNX tool share (tool.cpp).
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "checkpoint/onnx_layout.h"
#include "core/message.h"
#include "onnx_graph/onnx_rewrite.h"

namespace wasmquant::onnx_tool {

[[noreturn]] inline void fail(const Error& error) {
  std::fprintf(stderr, "%s at %s: %s\n", std::string(name_of(error.code)).c_str(), error.where.c_str(),
               error.message.c_str());
  std::exit(1);
}
[[noreturn]] inline void fail(const std::string& message) { fail(Error(ErrorCode::argument_invalid, "", message)); }
template <class T>
T take(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}
inline void check(Status status) {
  if (!status) fail(status.error());
}

/// As a host does it: the ranges that are asked for, no others.
onnx::Model read_model(const std::string& file);

/// The bytes of a model.
struct Files {
  std::string model;
  std::vector<std::string> external;
  const std::string& of(const onnx::Model& index, const onnx::Tensor& tensor) const {
    if (!tensor.is_external()) return model;
    const auto& all = index.locations;
    return external[static_cast<size_t>(std::find(all.begin(), all.end(), tensor.location) - all.begin())];
  }
};

/// A weight.
struct Quantized {
  std::vector<std::string> components;
  std::vector<float> values;  // of the codes, as the model has the weight
};

// tool_values.cpp
std::vector<float> values_of(const onnx::Tensor& tensor, const std::string& file);
/// Tiles of a few lines, packed as a session does it; the values come from the packed bytes.
Quantized quantize(const WeightLayout& layout, std::vector<float> x);
/// The float model with other values in place of a weight.
void overwrite(const onnx::Tensor& tensor, const std::vector<float>& values, std::string& file);
std::string bytes_of(const conversion::OnnxFile& file, const conversion::OnnxRewrite& rewrite, const Files& files,
                     const std::vector<Quantized>& quantized);

// tool_reference.cpp
/// The same computation in floats: inputs of the chosen weights' nodes, and outputs if they are static, go through
/// eight bits and back.
std::string with_quantized_values(const std::string& floats, const std::vector<conversion::OnnxChoice>& choices);

}  // namespace wasmquant::onnx_tool
