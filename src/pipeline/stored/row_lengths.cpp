#include "pipeline/stored/row_lengths.h"

#include "families/config_reader.h"
#include "families/joined_layers.h"

namespace wasmquant {
namespace {

constexpr const char* kHiddenKeys[] = {"hidden_size|n_embd|d_model|dim"};
constexpr const char* kInnerKeys[] = {"intermediate_size|n_inner|ffn_dim|d_ff|hidden_dim", "moe_intermediate_size",
                                      "shared_expert_intermediate_size", "q_lora_rank", "kv_lora_rank"};

uint64_t the_one_in(const List<uint64_t>& lengths, uint64_t capacity, uint64_t per_word) {
  uint64_t found = capacity;
  bool is_known = false;
  for (const uint64_t length : lengths) {
    if (length > capacity || length + per_word <= capacity) continue;
    if (is_known && length != found) return 0;
    found = length;
    is_known = true;
  }
  return found;
}

}  // namespace

RowLengths::RowLengths(const json::Value& config) {
  const families::ConfigReader reader(config);
  for (const char* key : kHiddenKeys)
    if (const auto length = reader.count(key)) add_hidden(*length);
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

uint64_t RowLengths::of(std::string_view layer, uint64_t capacity, uint64_t per_word) const {
  // Parts of a joined matrix have one input, the block's.
  const bool reads_hidden = !hidden_.empty() && !families::joined_matrix(layer).empty();
  return the_one_in(reads_hidden ? hidden_ : others_, capacity, per_word);
}

}  // namespace wasmquant
