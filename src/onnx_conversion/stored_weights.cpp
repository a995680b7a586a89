#include "onnx_conversion/stored_weights.h"

#include <algorithm>

#include "core/message.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {
namespace {

std::string shape_text(std::span<const uint64_t> shape) {
  std::string out = "[";
  for (const uint64_t length : shape) out += text_of("{}{}", out.size() > 1 ? ", " : "", length);
  return out + "]";
}

}  // namespace

Value StoredWeights::operator()(const std::string& name, std::initializer_list<uint64_t> shape) {
  auto added = add(name, {shape.begin(), shape.size()});
  if (added) return *added;
  if (status_) status_ = std::move(added.error());
  return {};
}

Result<Value> StoredWeights::add(const std::string& name, std::span<const uint64_t> shape) {
  for (const auto& [known, value] : added_)
    if (known == name) return value;
  TRY(stored, tensors_.find(name));
  if (!std::equal(shape.begin(), shape.end(), stored.shape.begin(), stored.shape.end()))
    return error_at(ErrorCode::shape_mismatch, name, "holds {}; according to config.json it is {}",
                    shape_text(stored.shape), shape_text(shape));
  graph_.stored(name, stored.data_type, stored.shape, stored.location, stored.begin, stored.end - stored.begin);
  Value value = graph_.named(name);
  if (stored.data_type != kFloat32) value = graph_.node("Cast", {value}, {{"to", int64_t{kFloat32}}});
  added_.push_back({name, value});
  return value;
}

}  // namespace wasmquant::conversion
