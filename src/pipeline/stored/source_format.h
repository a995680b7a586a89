// How one tool's checkpoints store weights: which tensors belong together, and their layout. A format is a file of its
// tool (tools/NAME/stored), and its row in tools/tools.def.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// codes: a quantized weight; part: its scales and the like; plain: values.
enum class StoredRole : uint8_t { plain, codes, part };

/// Recognises one tool's tensors in a model. It holds facts of the config, not of the model.
class SourceFormat {
 public:
  virtual ~SourceFormat() = default;
  virtual StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const = 0;
  /// The weight's name: LAYER.weight, or a parameter's own name.
  virtual std::string weight_name(const ModelTensor& codes) const;
  /// Candidate shapes; the first that find() accepts is right. A single one is certain, unless an empty one follows.
  virtual List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const = 0;
  /// The weight of `weight.layer` with that shape; nullopt if it is not stored as codes. Errors: tensor-missing,
  /// shape-mismatch, dtype-unsupported, naming the tensor.
  virtual Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const = 0;
  /// Codes in a word of these rows, if the last word of each may be filled in part, so that the shape of the codes does
  /// not tell the length of the rows; else 1.
  virtual uint64_t codes_per_word(const ModelIndex&, const WeightDescription&) const { return 1; }
  /// Whether the tool arranges tensors in other ways than the model's class, so that restore() is called.
  virtual bool rearranges() const noexcept { return false; }
  /// Gives decoded tensors the names, shapes and values that the model's class has. Sets `config` to the text of another
  /// config.json if they are those of another class. Errors: format-unsupported.
  virtual Status restore(const ModelIndex&, List<ModelTensor>&, std::string& /*config*/) const { return {}; }
  virtual PackMethod pack_method() const noexcept { return PackMethod::reorder; }
};

/// `config`: the quantization_config block, or null. Errors: format-unsupported, config-invalid.
using MakeSourceFormat = Result<std::unique_ptr<SourceFormat>>(const json::Value& config);

/// The tensor LAYER.SUFFIX, or null.
const ModelTensor* tensor_of(const ModelIndex& model, std::string_view layer, std::string_view suffix);
/// A name split at its last dot; without a dot, all of it is the part.
struct SplitName {
  std::string_view layer, part;
};
SplitName split_name(std::string_view name) noexcept;
/// Whether a name or pattern of a config can be matched here; regular expressions of other programs may say more.
bool is_usable_pattern(std::string_view pattern);
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) noexcept;

/// The weight laid out as `format`, if all components have the right shapes. `reads_group_index`: see WeightLayout.
Result<StoredWeight> locate(const ModelIndex& model, std::string_view format, WeightDescription weight,
                            const Stages& stages, bool reads_group_index = false);
/// Errors: tensor-missing.
Result<const ModelTensor*> need_tensor(const ModelIndex& model, const std::string& name);
/// A shape-mismatch: `tensor` is not what `format` requires.
Error wrong_tensor(const ModelTensor& tensor, std::string_view format, const Component& expected);

}  // namespace wasmquant
