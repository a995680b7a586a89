// Checkpoint formats: the weights and config.json that one family of runtimes reads. A format is one file that chooses
// layouts and a function that returns it, plus its row in tools/tools.def.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/activation_scales.h"
#include "checkpoint/layout/shared_value.h"
#include "checkpoint/layout/weight_layout.h"
#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"
#include "core/message.h"
#include "families/model_family.h"
#include "numeric/ggml_type.h"

namespace wasmquant {

/// One weight of a finished plan, as the config block needs it.
struct LayerPlan {
  std::string layer;            // module name, of the tensor
  std::string layer_type;       // Linear, Embedding, ...
  SharedValue<Stages> weight;   // empty: not quantized
  Stages inputs;                // what the runtime quantizes the layer's inputs to, with scales computed at run time or
  Stages outputs;               // stored; its outputs, with stored scales
  std::string loader_layer{};   // transformers' name for it if different (runtimes/transformers/loader_names.h)
  std::string stored_layer{};   // of the tensor that the file has for it and others, if it has one (OutputStack)
  bool caches_outputs = false;  // `outputs` are keys or values: runtimes quantize them as they store them
  bool is_unpacked = false;     // WeightDescription::is_unpacked
  bool is_reordered = false;    // WeightDescription::is_reordered
  bool is_requested = false;    // a rule of the config names the layer
  bool is_split_expert = false;    // a matrix of a tensor that holds all experts
  uint64_t rows = 0, columns = 0;  // of a matrix, else 0
};

/// Whether the layer's weight is copied or cast to 16 bits.
bool keeps_weight(const LayerPlan& layer) noexcept;

/// Heads that classes of the family tie to the embedding: Linear modules of the loaded model without a tensor.
List<std::string_view> heads_without_tensor(const List<LayerPlan>& layers, const families::ModelFamily& family);
/// Whether the file holds scales of its inputs or outputs.
bool has_activation_scales(const LayerPlan& layer) noexcept;
/// Whether the stages' scales are stored: not dynamic, and not plain casts.
bool are_static(const Stages& stages) noexcept;

/// A weight called `layer`, described to a format.
struct WeightDescription {
  std::string layer;  // module name: the tensor's name without ".weight"
  std::string layer_type;
  std::vector<uint64_t> shape;
  StorageDtype source = StorageDtype::F32;
  PackMethod pack_method = PackMethod::reorder;  // quark only
  bool is_unpacked = false;   // compressed-tensors only: 8-bit integers as bytes, where words could hold them, too
  bool is_reordered = false;  // calibration may choose which columns share a scale (GPTQ's act-order)
  bool is_stored = false;     // of an opened file: also what a format can hold and is not written here
  // For formats of plain values, which keep the model's arrangement (stacked_weight.h):
  std::string tensor;           // name of the tensor if it is not layer.weight
  uint64_t experts = 0;         // matrices along the first of three axes; 0: one matrix
  bool is_input_major = false;  // a matrix is [in, out]
  // Of an opened file: an object with what the layout needs beyond the spec; else null. compressed-tensors: whole_words,
  // bits of codes of which each word begins with one.
  SharedValue<json::Value> stored{};
};

/// Where files hold the scales of a calibrated key-value cache.
enum class CacheStorage : uint8_t {
  none,
  attention,  // <attention>.k_scale and v_scale, of keys after RoPE and values
  outputs     // output_scale of k_proj and v_proj
};

/// How the experts of a model are stored.
enum class ExpertStorage : uint8_t {
  as_stored,   // tensors keep their arrangement, one expert each or all
  per_expert,  // one matrix each, under the names that runtimes read
  left         // they are not quantized
};

/// What files of a format can hold, whichever weights they have.
struct FormatTraits {
  bool is_read_only = false;             // its weights are read, not written
  bool needs_config_block = true;        // its weights load only with a quantization_config in config.json
  bool holds_activation_scales = false;  // static scales of inputs and outputs
  bool holds_group_index = false;        // groups whose columns stand anywhere in the row
  bool holds_split_layers = false;       // weights that a loader splits (runtimes/transformers/conversions.h)
  bool holds_input_major = false;        // weights stored as [in, out]
  bool holds_biases = false;             // quantized biases
  bool holds_end_codes = false;          // codes that count from an end (counts_from_ends)
  bool declares_rotation = false;        // the config block says which inputs are rotated at run time (R4)
  ExpertStorage experts = ExpertStorage::per_expert;
  CacheStorage cache = CacheStorage::none;  // of a calibrated key-value cache, which its config block then describes
};

/// One format: how it lays out weights, and its config block.
/// What a loader does with its files is in runtimes/loaders: a question belongs here only if bytes or the config block answer it.
class CheckpointFormat {
 public:
  virtual std::string_view name() const noexcept = 0;
  virtual FormatTraits traits() const noexcept = 0;
  /// One stage, or two. Errors: format-unsupported, which lists what the format supports and which formats would fit.
  virtual Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const = 0;
  /// Whether quantization_config can express these inputs.
  virtual bool stores_input_scales(const Stages& inputs) const = 0;
  /// Whether `storage.spec`, 8 bits per tensor or per channel with float32 scales, can be stored next to the weight;
  /// adapts `storage` to the format.
  virtual bool choose_activation_storage(const WeightDescription& /*weight*/, ActivationStorage& /*storage*/) const {
    return false;
  }
  /// Checks what the layers of a model must have in common. Errors: format-unsupported naming the layer.
  virtual Status check(const List<LayerPlan>& /*layers*/) const { return {}; }
  /// The `quantization_config` block of config.json; null if none is needed. `layers` lists every module with a weight
  /// of a quantizable type, in file order.
  virtual json::Value quantization_config(const Config& config, const List<LayerPlan>& layers,
                                          const families::ModelFamily& family) const = 0;
  /// What its config block says of a key-value cache with these stages; null if it cannot say it. CacheStorage::attention.
  virtual json::Value cache_scheme(const Stages& /*stages*/) const { return {}; }

 protected:
  ~CheckpointFormat() = default;
};

/// All of them, in the order of tools/tools.def.
std::span<const CheckpointFormat* const> checkpoint_formats() noexcept;
/// The format of that name, or null.
const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept;

/// Fills in the spec of the codes, with the dtype that arithmetic `weight` stands for, rows, columns, granularity. Errors: those of granularity_of.
Result<WeightLayout> begin_layout(const WeightDescription& weight, const Stages& stages);
/// Appends a component named layer + "." + suffix; bytes follow from dtype and shape.
void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::vector<uint64_t> shape);
void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::initializer_list<uint64_t> shape);
/// A weight in a GGUF type: rows along the last dimension, a vector is one row. `name` in the file.
WeightLayout ggml_layout(const std::vector<uint64_t>& shape, StorageDtype source, GgmlType type, std::string name);
/// Values in bfloat16 or float16, stored alike in every format.
WeightLayout cast_layout(WeightLayout layout, const WeightDescription& weight);
/// The spec with scales in the weight's dtype unless it says otherwise, because loaders of compressed-tensors convert
/// scales to it. Rounding a scale after choosing codes would change every value.
QuantizationSpec with_source_scales(QuantizationSpec spec, StorageDtype source);
/// The spec with the dtype that arithmetic `weight` stands for with a weight of dtype `source`.
QuantizationSpec with_known_arithmetic(QuantizationSpec spec, StorageDtype source) noexcept;
/// The storage dtype of scales: that of spec.scale_type; of `float` that of the arithmetic, but float32 for integers
/// per tensor.
StorageDtype scale_storage(const QuantizationSpec& spec) noexcept;

}  // namespace wasmquant
