// The shapes, rows and views of the targets of one tensor, by its kind.
#include "gguf_conversion/tensors/arranged_tensors.h"

#include <cmath>
#include <utility>

#include "core/message.h"
#include "gguf_conversion/tensors/row_factors.h"
#include "gguf_conversion/tensors/row_groups.h"

namespace wasmquant::conversion {
namespace {

uint64_t product_of(std::span<const uint64_t> extents) noexcept {
  uint64_t product = 1;
  for (const uint64_t extent : extents) product *= extent;
  return product;
}

constexpr uint64_t kColors = 3;

uint64_t rows_of(std::span<const uint64_t> shape) noexcept {
  return shape.size() == 1 ? shape[0] : product_of(shape.first(shape.size() - 1));
}

// The whole part of the square root.
uint64_t root_of(uint64_t square) noexcept { return static_cast<uint64_t>(std::sqrt(static_cast<double>(square))); }

// The views of a tensor, of each of its outermost entries.
List<StridedView>& of_views(ConvertedTensor* to) {
  to->rounds = to->shape[0];
  return to->views;
}

// The targets of one tensor.
class Arrangement {
 public:
  Arrangement(const LayoutSizes& sizes, uint32_t source, const SourceTensor& from, TensorMatch& match,
              List<ConvertedTensor>& out)
      : sizes_(sizes),
        source_(source),
        from_(from),
        match_(match),
        shape_(from.shape.begin(), from.shape.end()),
        out_(out) {
    if (match.kind == TensorKind::short_conv && shape_.size() == 3 && shape_[1] == 1) shape_.erase(shape_.begin() + 1);
  }

  Status run() {
    switch (match_.kind) {
      case TensorKind::input_major:
      case TensorKind::paired:
        return add_matrices(match_.kind == TensorKind::paired);
      case TensorKind::columns:
        return add_columns();
      case TensorKind::grouped:
        return add_grouped();
      case TensorKind::times:
        return add_times();
      case TensorKind::pixels:
        return shape_.size() == 2 ? add_pixels() : add_equal_parts();
      default:
        return match_.groups.empty() ? add_equal_parts() : add_divided();
    }
  }

 private:
  size_t targets() const noexcept { return 1 + match_.more.size(); }
  bool is_vector() const noexcept { return shape_.size() == 1; }
  Error mismatch(const char* expected) const { return error_at(ErrorCode::shape_mismatch, from_.name, "{}", expected); }

  // Null for a target that is left out.
  ConvertedTensor* target(size_t number) {
    std::string& name = number == 0 ? match_.name : match_.more[number - 1];
    if (name.empty()) return nullptr;
    ConvertedTensor& to = out_.emplace_back();
    to.source = source_;
    to.name = std::move(name);
    to.shape = shape_;
    to.is_logarithm = match_.kind == TensorKind::decay;
    to.half = match_.half;
    return &to;
  }
  void finish(ConvertedTensor& to) const { to.shape.resize(to.shape.size() + (match_.adds_axis ? 1 : 0), 1); }

  // [..., in, out] as [..., out, in]; the outputs of several targets follow each other, or take turns. [..., out] if paired.
  Status add_matrices(bool is_paired) {
    const size_t axes = shape_.size();
    const bool is_matrix = axes > 2 || !is_paired;
    if (axes < 2 || shape_.back() % targets() != 0)
      return mismatch("is no stack of matrices whose outputs are divided evenly");
    const uint64_t outputs = shape_.back(), count = outputs / targets(), inputs = is_matrix ? shape_[axes - 2] : 1;
    const uint64_t step = is_paired ? targets() : 1;
    for (size_t number = 0; number < targets(); ++number) {
      ConvertedTensor* const to = target(number);
      if (to == nullptr) continue;
      to->shape.back() = count;
      to->rounds = rows_of(shape_) / inputs;
      const uint64_t first = is_paired ? number : number * count;
      to->views.push_back({first, {1, count, inputs}, {0, step, outputs}});
      if (!is_matrix) continue;
      to->shape[axes - 2] = count;
      to->shape[axes - 1] = inputs;
    }
    return {};
  }

  Status add_columns() {
    TRY(divided, divide_rows(match_.groups, sizes_, source_, from_, shape_.back()));
    ConvertedTensor* const to = target(0);
    to->rounds = rows_of(shape_);
    for (const SourceRows& some : divided.front()) to->views.push_back({some.first, {1, 1, some.count}, {0, 0, 1}});
    return {};
  }

  Status add_times() {
    if (shape_.size() != 5 || shape_[2] != targets()) return mismatch("is no convolution over as many times");
    const uint64_t plane = shape_[3] * shape_[4], channels = shape_[1];
    shape_.erase(shape_.begin() + 2);
    for (size_t time = 0; time < targets(); ++time)
      of_views(target(time)).push_back({time * plane, {1, channels, plane}, {0, targets() * plane, 1}});
    return {};
  }

  Status add_pixels() {
    const uint64_t pixels = shape_[1] / kColors, side = root_of(pixels);
    if (side * side * kColors != shape_[1]) return mismatch("is no matrix of square patches of three colors");
    shape_ = {shape_[0], kColors, side, side};
    of_views(target(0)).push_back({0, {1, kColors, pixels}, {0, 1, kColors}});
    return {};
  }

  Status add_grouped() {
    TRY(groups, sizes_.named(match_.groups[1]));
    if (!is_vector() || groups == 0 || shape_[0] % groups != 0)
      return mismatch("is not divided evenly by the groups of its norm");
    target(0)->shape = {groups, shape_[0] / groups};
    return {};
  }

  // [..., rows, columns], or a vector: targets with as many rows of each matrix.
  Status add_equal_parts() {
    const size_t axis = shape_.size() < 2 ? 0 : shape_.size() - 2;
    if (shape_.empty() || shape_[axis] % targets() != 0) return mismatch("is not two halves of as many rows");
    const uint64_t part = shape_[axis] / targets(), matrices = product_of(std::span(shape_).first(axis));
    for (size_t number = 0; number < targets(); ++number) {
      ConvertedTensor* const to = target(number);
      if (to == nullptr) continue;
      to->shape[axis] = part;
      for (uint64_t m = 0; targets() > 1 && m < matrices; ++m)
        to->rows.push_back({source_, (targets() * m + number) * part, part});
      finish(*to);
    }
    return {};
  }

  Status add_divided() {
    TRY(divided, divide_rows(match_.groups, sizes_, source_, from_, rows_of(shape_)));
    const bool are_matrices = match_.groups.find_first_of("'^") != match_.groups.npos;
    for (size_t number = 0; number < targets(); ++number) {
      ConvertedTensor* const to = number < divided.size() ? target(number) : nullptr;
      if (to == nullptr) continue;
      to->rows = std::move(divided[number]);
      const SourceRows& first = to->rows.front();
      to->shape.front() = first.count * to->rows.size();
      if (are_matrices) {
        to->shape = {to->rows.size(), first.count, shape_.back()};
        if (first.is_transposed) std::swap(to->shape[1], to->shape[2]);
      }
      finish(*to);
    }
    return {};
  }

  const LayoutSizes& sizes_;
  const uint32_t source_;
  const SourceTensor& from_;
  TensorMatch& match_;
  std::vector<uint64_t> shape_;
  List<ConvertedTensor>& out_;
};

Status add_multiplied(const LayoutSizes& sizes, uint32_t source, const SourceTensor& from, TensorMatch& match,
                      List<ConvertedTensor>& out) {
  if (from.shape.size() < 2)
    return error_at(ErrorCode::shape_mismatch, from.name,
                    "is a bias of a matrix that GGUF has multiplied, which llama.cpp does not add so");
  TRY(parts, rows_of_parts(match.groups, sizes, from, rows_of(from.shape)));
  TRY(factors, row_factors(match.factors, parts, sizes.config()));
  ConvertedTensor& to = out.emplace_back();
  to.source = source;
  to.name = std::move(match.name);
  to.shape.assign(from.shape.begin(), from.shape.end());
  to.factors = std::move(factors);
  return {};
}

}  // namespace

Status ArrangedTensors::add(uint32_t source, const SourceTensor& tensor, TensorMatch& match,
                            List<ConvertedTensor>& out) const {
  if (!match.factors.empty()) return add_multiplied(sizes_, source, tensor, match, out);
  return Arrangement(sizes_, source, tensor, match, out).run();
}

}  // namespace wasmquant::conversion
