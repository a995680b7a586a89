#include "pipeline/stored/row_lengths.h"

#include "families/config_reader.h"
#include "runtimes/vllm/joined_layers.h"

namespace wasmquant {
namespace {

constexpr const char* kHiddenKeys = "hidden_size|n_embd|d_model|dim";
constexpr const char* kInnerKeys[] = {"intermediate_size|n_inner|ffn_dim|d_ff|hidden_dim", "moe_intermediate_size",
                                      "shared_expert_intermediate_size", "q_lora_rank", "kv_lora_rank"};

// How many of `lengths` end in the last word, and one of them.
struct Found {
  uint64_t length = 0;
  size_t count = 0;
};
Found ending_within(const List<uint64_t>& lengths, uint64_t capacity, uint64_t per_word) {
  Found found;
  for (const uint64_t length : lengths) {
    if (length > capacity || length + per_word <= capacity || length == found.length) continue;
    found.length = length;
    ++found.count;
  }
  return found;
}

std::string_view module_of(std::string_view layer) { return layer.substr(0, layer.rfind('.')); }

}  // namespace

RowLengths::RowLengths(const json::Value& config) {
  const families::ConfigReader reader(config);
  if (const auto length = reader.count(kHiddenKeys)) add_hidden(*length);
  for (const char* key : kInnerKeys)
    if (const auto length = reader.count(key)) add(*length);
  const auto heads = reader.count("num_attention_heads|n_head");
  const auto size = reader.count("head_dim|v_head_dim");
  if (heads && size) add(uint64_t{*heads} * *size);
}

void RowLengths::add_hidden(uint64_t length) {
  hidden_.push_back(length);
  add(length);
}

void RowLengths::add_rows(std::string_view layer, uint64_t rows) {
  add(rows);
  if (!vllm::joined_matrix(layer).empty()) joined_.push_back({std::string(module_of(layer)), rows});
}

uint64_t RowLengths::of(std::string_view layer, uint64_t capacity, uint64_t per_word) const {
  List<uint64_t> inputs;
  if (!vllm::joined_matrix(layer).empty()) {
    inputs = hidden_;  // the parts of a joined matrix have one input, the block's
  } else {
    for (const Rows& other : joined_)
      if (other.module == module_of(layer)) inputs.push_back(other.rows);
  }
  for (const List<uint64_t>* lengths : {static_cast<const List<uint64_t>*>(&inputs), &others_})
    if (const Found found = ending_within(*lengths, capacity, per_word); found.count != 0)
      return found.count == 1 ? found.length : 0;
  return capacity;
}

}  // namespace wasmquant
