#include "formats/onnx/onnx_views.h"

#include <cstring>
#include <utility>

#include "formats/onnx/protobuf.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

// False: not varints up to the end.
bool read_varints(std::string_view text, std::vector<int64_t>& out) {
  std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  while (!rest.empty()) {
    uint64_t value = 0;
    uint32_t used = 0;
    if (protobuf::read_varint(rest, value, used) != protobuf::Outcome::read) return false;
    out.push_back(static_cast<int64_t>(value));
    rest = rest.subspan(used);
  }
  return true;
}

uint64_t count_of(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;  // of an existing tensor: below 2^55
  for (const uint64_t d : shape) count *= d;
  return count;
}

std::vector<uint64_t> seen_shape(const View& view) {
  std::vector<uint64_t> shape = view.shape;
  if (view.is_transposed) std::swap(shape[0], shape[1]);
  return shape;
}

std::optional<View> transposed(const Skeleton& skeleton, const Node& node, View view) {
  const Attribute* const attribute = node.find("perm");
  const size_t rank = view.shape.size();
  bool is_identity = rank < 2, is_swap = rank == 2;  // without perm the axes are reversed
  if (attribute != nullptr) {
    const auto perm = integers_of(skeleton, *attribute);
    if (!perm || perm->size() != rank) return std::nullopt;
    is_identity = true;
    for (size_t d = 0; d < rank; ++d) is_identity = is_identity && (*perm)[d] == static_cast<int64_t>(d);
    is_swap = rank == 2 && (*perm)[0] == 1 && (*perm)[1] == 0;
  }
  if (!is_identity && !is_swap) return std::nullopt;
  if (is_swap) view.is_transposed = !view.is_transposed;
  return view;
}

// 0: the input's dimension, unless allowzero; -1: what is left.
std::optional<View> reshaped(const Node& node, View view, const std::vector<int64_t>& wanted) {
  const std::vector<uint64_t> seen = seen_shape(view);
  const uint64_t count = count_of(seen);
  const Attribute* const allow_zero = node.find("allowzero");
  const bool copies = allow_zero == nullptr || allow_zero->integer == 0;
  std::vector<uint64_t> shape;
  uint64_t known = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == -1 && open) return std::nullopt;
    if (wanted[d] == -1) open = d;
    if (wanted[d] < -1 || (wanted[d] == 0 && (!copies || d >= seen.size()))) return std::nullopt;
    shape.push_back(wanted[d] == -1 ? 1 : wanted[d] == 0 ? seen[d] : static_cast<uint64_t>(wanted[d]));
    if (shape.back() == 0 || shape.back() > count / known) return std::nullopt;
    known *= shape.back();
  }
  if (open) shape[*open] = count / known;
  if (count == 0 || known * (open ? shape[*open] : 1) != count) return std::nullopt;
  if (view.is_transposed) return shape == seen ? std::optional<View>(std::move(view)) : std::nullopt;
  view.shape = std::move(shape);
  return view;
}

}  // namespace

std::optional<std::vector<int64_t>> integers_of(const Skeleton& skeleton, const Attribute& attribute) {
  std::vector<int64_t> out;  // AttributeProto: 3 i, 8 ints
  for (Fields f(skeleton, skeleton.field(attribute.whole.begin).payload); f.next();) {
    if (f.field.number != 3 && f.field.number != 8) continue;
    if (f.field.wire == Wire::varint) {
      out.push_back(static_cast<int64_t>(f.field.value));
    } else if (f.field.wire != Wire::bytes || skeleton.is_cut_out(f.field.payload) ||
               !read_varints(skeleton.text(f.field.payload), out)) {
      return std::nullopt;
    }
  }
  return out;
}

std::string_view text_of(const Skeleton& skeleton, const Attribute& attribute) {
  for (Fields f(skeleton, skeleton.field(attribute.whole.begin).payload); f.next();)  // AttributeProto: 4 s
    if (f.field.number == 4 && f.field.wire == Wire::bytes) return skeleton.text(f.field.payload);
  return {};
}

std::optional<std::vector<int64_t>> integers_of(const Model& model, const Tensor& tensor) {
  const Range values{tensor.begin, tensor.end};
  const bool is_listed = tensor.encoding == Encoding::bytes || tensor.encoding == Encoding::varints;
  if (tensor.data_type != static_cast<uint32_t>(DataType::int64) || tensor.is_external() || !is_listed ||
      tensor.input.bytes() > 0 || !model.skeleton->is_kept(values))
    return std::nullopt;
  const std::string_view text = model.skeleton->text(values);
  if (text.size() != values.bytes()) return std::nullopt;
  std::vector<int64_t> out;
  if (tensor.encoding == Encoding::varints) {
    if (!read_varints(text, out)) return std::nullopt;
  } else {
    out.resize(text.size() / sizeof(int64_t));
    if (!out.empty()) std::memcpy(out.data(), text.data(), out.size() * sizeof(int64_t));
  }
  if (out.size() != count_of(tensor.shape)) return std::nullopt;
  return out;
}

std::optional<View> view_of(const Skeleton& skeleton, const Node& node, const View& of,
                            const std::optional<std::vector<int64_t>>& wanted) {
  if (!node.domain.empty() || !node.graphs.empty() || node.outputs.size() != 1 || node.outputs[0].empty() ||
      of.shape.size() > kMaxViewRank || (wanted && wanted->size() > kMaxViewRank))
    return std::nullopt;
  View view{.data_type = of.data_type, .shape = of.shape, .is_transposed = of.is_transposed};
  if (node.op_type == "Identity") return view;
  if (node.op_type == "Transpose") return transposed(skeleton, node, std::move(view));
  if (node.op_type == "Reshape" && wanted) return reshaped(node, std::move(view), *wanted);
  if (node.op_type != "Cast") return std::nullopt;
  const Attribute* const to = node.find("to");
  if (to == nullptr || to->integer < 0 || !weight_dtype_of(static_cast<uint32_t>(to->integer))) return std::nullopt;
  view.data_type = static_cast<uint32_t>(to->integer);
  return view;
}

}  // namespace wasmquant::onnx
