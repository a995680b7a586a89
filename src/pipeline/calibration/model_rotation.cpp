// Rotations are multiplied into rows and columns, float64 row by row.
#include "pipeline/calibration/model_rotation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/message.h"
#include "model/linear_layers.h"
#include "model/pass_slots.h"

namespace wasmquant {
namespace {

using model::LinearInput;
using model::ModelPart;
using model::Slot;

// Columns rotated together, so that each cache line is read once.
constexpr size_t kColumns = 8;

}  // namespace

Result<ModelRotation> ModelRotation::create(const model::Architecture& a, const RotationOptions& options,
                                            const std::string& where) {
  ModelRotation out;
  out.hidden_ = a.hidden;
  out.architecture_ = a;
  out.norm_plus_one_ = a.norms.plus_one;
  const auto seed = [&](bool random, uint64_t which) {
    return random ? std::optional(2 * options.seed + which) : std::nullopt;
  };
  if ((options.r1 && !a.mixers.empty()) || (options.r2 && (!a.mixers.empty() || a.latent.rank > 0)))
    return error_at(ErrorCode::not_implemented, text_of("{}/{}", where, options.r1 && !a.mixers.empty() ? "r1" : "r2"),
                    "is not implemented for {}, in which not every layer has queries, keys and values; set it to false",
                    a.family);
  if ((options.r2 || options.r4) && (!a.sizes.empty() || a.names.has(ModelPart::v_norm)))
    return error_at(ErrorCode::not_implemented, text_of("{}/{}", where, options.r2 ? "r2" : "r4"),
                    "is not implemented for {}, whose layers have several sizes, or norms of values; set it to false",
                    a.family);
  if (options.r1) {
    const std::string at = where + "/r1";
    const model::ModelNames& names = a.names;
    if (names.has(ModelPart::attention_post_norm))
      return error_at(ErrorCode::not_implemented, at,
                      "{} norms what attention and feed-forward add to the residual stream, so the stream cannot be "
                      "rotated; set r1 to false",
                      a.family);
    if (a.norms.subtract_mean || a.is_parallel || !names.has_weight(ModelPart::input_norm) ||
        !names.has_weight(ModelPart::feed_forward_norm) || names.has(ModelPart::positions) ||
        names.has(ModelPart::embedding_norm))
      return error_at(
          ErrorCode::not_implemented, at,
          "{} does not norm the residual stream by its mean square before attention and feed-forward, so the "
          "stream cannot be rotated; set r1 to false",
          a.family);
    const uint64_t block = options.rotation_size == 0 ? a.hidden : options.rotation_size;
    if (a.hidden % block != 0)
      return error_at(ErrorCode::config_invalid, where + "/rotation_size", "{} does not divide the hidden size {}",
                      block, a.hidden);
    auto stream = Hadamard::create(a.hidden, static_cast<size_t>(block), seed(options.random_r1, 0));
    if (!stream)
      return error_at(stream.error().code, at, "{}; give a rotation_size that divides the hidden size {}",
                      stream.error().message, a.hidden);
    out.stream_ = std::move(*stream);
  }
  if (options.r2) {
    if (model::fused_queries(a) != model::Fused::none)
      return error_at(ErrorCode::not_implemented, where + "/r2",
                      "{} has queries, keys and values in one matrix, whose rows are not rotated; set r2 to false",
                      a.family);
    auto head = Hadamard::create(a.head_dim, a.head_dim, seed(options.random_r2, 1));
    if (!head) return error_at(head.error().code, where + "/r2", "{}; set r2 to false", head.error().message);
    out.head_ = std::move(*head);
  }
  if (options.r4) {
    auto down = Hadamard::create(a.intermediate, a.intermediate, std::nullopt);
    if (!down) return error_at(down.error().code, where + "/r4", "{}; set r4 to false", down.error().message);
    out.down_ = std::move(*down);
  }
  return out;
}

void ModelRotation::rotate_rows(std::span<float> weight, std::span<const float> norm, Hadamard& by) {
  row_.resize(by.size());
  for (size_t at = 0; at < weight.size(); at += by.size()) {
    for (size_t j = 0; j < by.size(); ++j) {
      const double factor = norm.empty() ? 1.0 : double{norm[j]} + (norm_plus_one_ ? 1 : 0);
      row_[j] = weight[at + j] * factor;
    }
    by.multiply(row_.data());
    for (size_t j = 0; j < by.size(); ++j) weight[at + j] = static_cast<float>(row_[j]);
  }
}

void ModelRotation::rotate_columns(std::span<float> weight, size_t columns, Hadamard& by) {
  const size_t rows = by.size();
  row_.resize(rows * kColumns);
  for (size_t part = 0; part < weight.size(); part += rows * columns)
    for (size_t first = 0; first < columns; first += kColumns) {
      const size_t count = std::min(kColumns, columns - first);
      float* const corner = weight.data() + part + first;
      for (size_t i = 0; i < rows; ++i)
        for (size_t c = 0; c < count; ++c) row_[c * rows + i] = corner[i * columns + c];
      for (size_t c = 0; c < count; ++c) by.multiply(row_.data() + c * rows);
      for (size_t i = 0; i < rows; ++i)
        for (size_t c = 0; c < count; ++c) corner[i * columns + c] = static_cast<float>(row_[c * rows + i]);
    }
}

void ModelRotation::clear_norm(std::span<float> norm) const noexcept {
  std::fill(norm.begin(), norm.end(), norm_plus_one_ ? 0.0f : 1.0f);
}

void ModelRotation::rotate_block(model::BlockValues& block) {
  if (head_.size() != 0) {
    rotate_columns(block[Slot::v], hidden_, head_);
    rotate_columns(block[Slot::v_bias], 1, head_);
    rotate_rows(block[Slot::o], {}, head_);
  }
  if (rotates_down_input()) rotate_rows(block[Slot::down], {}, down_);
  if (!rotates_stream()) return;
  for (const LinearInput input : {LinearInput::attention, LinearInput::feed_forward}) {
    std::vector<float>& norm = block[input == LinearInput::attention ? Slot::input_norm : Slot::feed_forward_norm];
    for (const model::LinearLayer& layer : model::consumers_of(architecture_, input))
      rotate_rows(block[layer.weight], norm, stream_);
    clear_norm(norm);
  }
  for (const LinearInput input : {LinearInput::attention_output, LinearInput::feed_forward_output}) {
    const model::LinearLayer& layer = model::consumers_of(architecture_, input).front();
    rotate_columns(block[layer.weight], block[layer.weight].size() / hidden_, stream_);
    rotate_columns(block[layer.bias], 1, stream_);
  }
}

Status EmbeddingRotation::begin(uint32_t slot, TensorTask task) {
  if (slot != kEmbeddingSlot && slot != kFinalNormSlot && slot != kHeadSlot)
    return error_at(ErrorCode::argument_invalid, task.name, "is neither embedding, final norm nor head");
  if (task.layout->components.empty() || (slot == kHeadSlot && norm_.empty()))
    return error_at(ErrorCode::argument_invalid, task.name, "is not stored in a dtype that calibration knows");
  slot_ = slot;
  tile_rows_ = 0;
  task_.emplace(std::move(task));
  return {};
}

Result<StoredValues> EmbeddingRotation::store(std::span<const float> rows, uint32_t first_row) {
  if (!task_ || rows.empty()) return error_at(ErrorCode::state_invalid, "calibration", "no rows were loaded");
  std::vector<float> rotated(rows.begin(), rows.end());
  if (slot_ == kFinalNormSlot) {
    norm_ = rotated;
    rotation_.clear_norm(rotated);
  } else if (slot_ == kEmbeddingSlot) {
    rotation_.rotate_embedding(rotated);
  } else {
    rotation_.rotate_head(rotated, norm_);
  }
  // All tiles except the last have as many rows as the first.
  if (tile_rows_ == 0) tile_rows_ = slot_ == kFinalNormSlot ? 1 : rows.size() / rotation_.hidden();
  return store_modified_rows(*task_, tile_rows_, first_row, rotated);
}

}  // namespace wasmquant
