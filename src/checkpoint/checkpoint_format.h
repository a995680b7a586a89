// Checkpoint formats: what the weights of a model and its config.json look like for one family of runtimes.
// A format is one file that chooses layouts and a function that returns it, plus its row in formats.def.
#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/activation_scales.h"
#include "checkpoint/layout/weight_layout.h"
#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"
#include "core/message.h"
#include "families/model_family.h"
#include "numeric/ggml_type.h"

namespace wasmquant {

/// One weight of a finished plan, as far as the config block needs it.
struct LayerOutcome {
  std::string layer;           // module name, of the tensor
  std::string layer_type;      // Linear, Embedding, ...
  Stages weight;               // empty: kept as it is
  Stages inputs;               // what the runtime does to the layer's inputs, with scales that it finds itself, or that
  Stages outputs;              // are stored; to its outputs, with stored scales
  std::string loader_layer{};  // what transformers calls it where that is another name (families/loader_names.h)
};

/// Whether the file holds scales of its inputs or outputs.
bool has_activation_scales(const LayerOutcome& layer) noexcept;
/// Whether the stages' scales are found once and stored: not dynamic, and not plain casts.
bool are_static(const Stages& stages) noexcept;

/// How a weight called `layer` is described to a format.
struct WeightDescription {
  std::string layer;  // module name: the tensor's name without ".weight"
  std::string layer_type;
  std::vector<uint64_t> shape;
  StorageDtype source = StorageDtype::F32;
  PackMethod pack_method = PackMethod::reorder;  // quark only
  // What only formats of plain values store as it lies in the model (stacked_weight.h):
  std::string tensor;           // name of the tensor where that is not layer.weight
  uint64_t experts = 0;         // matrices along the first of three axes; 0: one matrix
  bool is_input_major = false;  // a matrix is [in, out]
  json::Value stored{};  // of formats that are only read: an object of what their layouts need besides; else null
};

/// What becomes of the experts of a model.
enum class ExpertStorage : uint8_t {
  as_stored,   // tensors stay as they are, of one expert or of all
  per_expert,  // a matrix each, under the names that runtimes read
  left         // they are not quantized
};

class CheckpointFormat {
 public:
  virtual std::string_view name() const noexcept = 0;
  /// Weights of it are read, not written.
  virtual bool is_read_only() const noexcept { return false; }
  /// One stage, or two. Errors: format-unsupported, which says what the format can hold and which format could.
  virtual Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const = 0;
  /// Whether quantization_config can say what a runtime is to do to inputs.
  virtual bool holds_inputs(const Stages& inputs) const = 0;
  /// Whether there is a place for static scales of inputs and outputs at all.
  virtual bool holds_activation_scales() const { return false; }
  /// Whether those of `storage.spec`, 8 bits per tensor or per channel with scales in float32, have a place beside the
  /// weight, and how the format differs from what `storage` says.
  virtual bool fit(const WeightDescription& /*weight*/, ActivationStorage& /*storage*/) const { return false; }
  /// How experts of this family are stored. `include_experts`: also where transformers cannot load them.
  virtual ExpertStorage expert_storage(const families::ModelFamily& /*family*/, bool /*include_experts*/) const {
    return ExpertStorage::per_expert;
  }
  /// Whether weights that are stored as [in, out] can be held.
  virtual bool holds_input_major() const noexcept { return false; }
  /// What the layers of a model have to share. Errors: format-unsupported naming the layer.
  virtual Status check(const List<LayerOutcome>& /*layers*/) const { return {}; }
  /// The `quantization_config` block of config.json; null when none is needed. `layers` holds every module with a
  /// weight of a quantizable type, in file order.
  virtual json::Value quantization_config(const Config& config, const List<LayerOutcome>& layers,
                                          const families::ModelFamily& family) const = 0;
  /// Whether loaders make bfloat16 of weights with these stages, whatever the model's dtype is.
  virtual bool loads_as_bfloat16(const Stages& /*stages*/) const { return false; }
  /// Whether loaders can be told to rotate inputs while the model runs (R4).
  virtual bool holds_online_rotation() const noexcept { return false; }
  /// Whether a weight with these stages has no tensor called `weight` any more.
  virtual bool hides_weight(const Stages& /*stages*/) const { return false; }

 protected:
  ~CheckpointFormat() = default;
};

/// The format of that name, or null.
const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept;
/// Those that are written, "compressed-tensors, quark, ...", for messages.
std::string checkpoint_format_names();

/// Fills what follows from shape and stages: the spec of the codes, rows, columns, granularity. Errors of
/// granularity_of.
Result<WeightLayout> begin_layout(const WeightDescription& weight, const Stages& stages);
/// Appends a component named layer + "." + suffix; bytes follow from dtype and shape.
void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::vector<uint64_t> shape);
void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::initializer_list<uint64_t> shape);
/// A weight in a GGUF type: rows along the last dimension, a vector is one row. `name` in the file.
WeightLayout ggml_layout(const std::vector<uint64_t>& shape, StorageDtype source, GgmlType type, std::string name);
/// Values in bfloat16 or float16, the same in every format.
WeightLayout cast_layout(WeightLayout layout, const WeightDescription& weight);
/// The spec with scales in the weight's own dtype, unless it says another: what loaders of compressed-tensors make of
/// scales. A scale that is rounded after the codes were chosen would move every value.
QuantizationSpec with_source_scales(QuantizationSpec spec, StorageDtype source);
/// The storage dtype of scales: that of spec.scale_type, float32 unless it names another.
StorageDtype scale_storage(const QuantizationSpec& spec) noexcept;

}  // namespace wasmquant
