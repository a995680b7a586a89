// Static scales of a layer's inputs and outputs: small tensors next to its weight. Calibration finds them before the
// files are laid out, so their values are part of the plan.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/layout/weight_layout.h"
#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

/// Which activations have scales: the inputs and outputs of a layer, the keys and values of an attention.
enum class ActivationRole : uint8_t { input, output, key, value };
/// Those of a layer.
inline constexpr ActivationRole kActivationRoles[] = {ActivationRole::input, ActivationRole::output};
/// "input", "output", "key", "value"
std::string_view name_of(ActivationRole role) noexcept;
/// The role of that name; input for any other.
ActivationRole activation_role_named(std::string_view name) noexcept;

/// How a format stores them.
struct ActivationStorage {
  QuantizationSpec spec;              // the observer's spec: scale_type is that of the stored scale
  std::vector<uint64_t> scale_shape;  // as many scales as the observer finds
  bool has_zero_point = false;        // also of scale_shape
  StorageDtype zero_point = StorageDtype::I8;
  int16_t zero_offset = 0;  // stored zero point = zero point + zero_offset
};

/// A tensor whose bytes are known when the file is laid out.
struct ConstantTensor {
  Component component;
  std::string bytes;
};

/// Quark's layout: scales [] or [channels], zero points of integers in their dtype. Nullopt for what no format stores:
/// lists of specs, other than 8 bits, groups, scales in other formats, fractional zero points; per_channel with an
/// unknown number of channels (0).
std::optional<ActivationStorage> activation_storage(const Stages& stages, uint64_t channels);

/// `<layer>.input_scale` and `<layer>.input_zero_point`, or `output_`, `k_` and `v_` for the other roles. `found`:
/// {"scale": [...], "zeroPoint": [...]}, with as many elements as the storage has.
List<ConstantTensor> activation_tensors(const std::string& layer, ActivationRole role, const json::Value& found,
                                        const ActivationStorage& storage);

}  // namespace wasmquant
