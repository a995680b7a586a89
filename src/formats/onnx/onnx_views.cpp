// One rule for each node that passes a weight on; the axes are kept in the order in which consumers see them.
#include "formats/onnx/onnx_views.h"

#include <cstring>
#include <numeric>
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

// Of the view's dimensions, by the order in which consumers see them.
std::vector<size_t> seen_axes(const View& view) {
  std::vector<size_t> axes(view.shape.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (view.is_transposed) std::swap(axes.end()[-1], axes.end()[-2]);
  return axes;
}

std::vector<uint64_t> shape_of(const View& view, const std::vector<size_t>& axes) {
  std::vector<uint64_t> shape;
  for (const size_t axis : axes) shape.push_back(view.shape[axis]);
  return shape;
}

// Whether the elements keep their order if the dimensions are read in this one: a dimension of 1 may be anywhere.
bool keeps_order(const View& view, const std::vector<size_t>& axes) {
  size_t least = 0;
  for (const size_t axis : axes) {
    if (view.shape[axis] == 1) continue;
    if (axis < least) return false;
    least = axis;
  }
  return true;
}

std::optional<View> transposed(const Skeleton& skeleton, const Node& node, View view) {
  const std::vector<size_t> before = seen_axes(view);
  std::vector<size_t> axes(before.rbegin(), before.rend());  // without perm the axes are reversed
  if (const Attribute* const attribute = node.find("perm")) {
    const auto perm = integers_of(skeleton, *attribute);
    if (!perm || perm->size() != before.size()) return std::nullopt;
    std::vector<bool> is_seen(before.size());
    for (size_t d = 0; d < before.size(); ++d) {
      const int64_t from = (*perm)[d];
      if (from < 0 || static_cast<size_t>(from) >= before.size() || is_seen[static_cast<size_t>(from)])
        return std::nullopt;
      is_seen[static_cast<size_t>(from)] = true;
      axes[d] = before[static_cast<size_t>(from)];
    }
  }
  view.is_transposed = !keeps_order(view, axes);
  if (view.is_transposed) std::swap(axes.end()[-1], axes.end()[-2]);
  if (!keeps_order(view, axes)) return std::nullopt;
  view.shape = shape_of(view, axes);
  return view;
}

// 0: the input's dimension, unless allowzero; -1: what is left.
std::optional<View> reshaped(const Node& node, View view, const std::vector<int64_t>& wanted) {
  const std::vector<uint64_t> seen = shape_of(view, seen_axes(view));
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

// The shape that Squeeze, Unsqueeze or Flatten gives. `axes`: of the first two; without them Squeeze removes every 1.
std::optional<std::vector<int64_t>> changed_shape(const Node& node, const View& view,
                                                  const std::optional<std::vector<int64_t>>& axes) {
  const std::vector<uint64_t> seen = shape_of(view, seen_axes(view));
  std::vector<int64_t> shape(seen.begin(), seen.end());
  if (node.op_type == "Flatten") {
    const Attribute* const given = node.find("axis");
    int64_t axis = given == nullptr ? 1 : given->integer;
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    if (axis < 0 || static_cast<size_t>(axis) > shape.size()) return std::nullopt;
    int64_t rows = 1;
    for (size_t d = 0; d < static_cast<size_t>(axis); ++d) rows *= shape[d];
    return std::vector<int64_t>{rows, -1};
  }
  const bool adds = node.op_type == "Unsqueeze";
  if (!axes) {
    if (adds || node.inputs.size() > 1) return std::nullopt;
    std::erase(shape, 1);
    return shape;
  }
  const size_t rank = adds ? shape.size() + axes->size() : shape.size();
  if (rank > kMaxViewRank) return std::nullopt;
  std::vector<bool> is_named(rank);
  for (int64_t axis : *axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || static_cast<size_t>(axis) >= rank || is_named[static_cast<size_t>(axis)]) return std::nullopt;
    is_named[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> changed;
  for (size_t d = 0, from = 0; d < rank; ++d) {
    if (is_named[d] && !adds && shape[d] != 1) return std::nullopt;
    if (is_named[d] && adds) changed.push_back(1);
    if (!is_named[d]) changed.push_back(shape[from]);
    from += is_named[d] && adds ? 0 : 1;
  }
  return changed;
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
  if (node.op_type == "Squeeze" || node.op_type == "Unsqueeze" || node.op_type == "Flatten") {
    if (node.find("axes") != nullptr) return std::nullopt;  // before version 13; raising the version edits this node
    const auto shape = changed_shape(node, view, wanted);
    return shape ? reshaped(node, std::move(view), *shape) : std::nullopt;
  }
  if (node.op_type != "Cast") return std::nullopt;
  const Attribute* const to = node.find("to");
  if (to == nullptr || to->integer < 0 || !weight_dtype_of(static_cast<uint32_t>(to->integer))) return std::nullopt;
  view.data_type = static_cast<uint32_t>(to->integer);
  return view;
}

}  // namespace wasmquant::onnx
