#include "gguf_conversion/tensors/layout_sizes.h"

#include "core/message.h"
#include "families/config_reader.h"

namespace wasmquant::conversion {
namespace {

struct SizeRow {
  char letter;
  const char *names, *divisor;  // of config.json; null: undivided
};
constexpr SizeRow kSizeRows[] = {
    {'h', "num_attention_heads|n_head", nullptr},
    {'n', "qk_nope_head_dim", nullptr},
    {'v', "v_head_dim", nullptr},
    {'k', "linear_num_key_heads", nullptr},
    {'e', "linear_num_value_heads", "linear_num_key_heads"},
    {'s', "linear_key_head_dim", nullptr},
    {'w', "linear_value_head_dim", nullptr},
    {'G', "n_groups|mamba_n_groups", nullptr},
    {'D', "mamba_d_ssm", nullptr},
    {'S', "mamba_d_state", nullptr},
};

}  // namespace

Result<uint64_t> LayoutSizes::named(char letter) const {
  if (letter >= '0' && letter <= '9') return static_cast<uint64_t>(letter - '0');
  const families::ConfigReader reader(*config_);
  const uint64_t shared = parameters_.key_value_heads == 0 ? 1 : parameters_.key_value_heads;
  if (letter == 'g') return shared;
  if (letter == 'r') return parameters_.heads / shared;
  if (letter == 'x') return uint64_t{parameters_.experts};
  if (letter == 'd') return uint64_t{parameters_.head_width};
  if (letter == 'p') {
    const json::Value* const padding = reader.find("pad_token_id");
    const int64_t number = padding == nullptr ? 1 : padding->as_integer();  // RoBERTa's
    return static_cast<uint64_t>(number < 0 ? 0 : number) + 1;
  }
  for (const SizeRow& row : kSizeRows) {
    if (row.letter != letter) continue;
    const auto count = reader.count(row.names);
    const auto divisor = row.divisor == nullptr ? std::optional<uint32_t>(1) : reader.count(row.divisor);
    if (count && divisor) return uint64_t{*count / *divisor};
    std::string_view names = count ? row.divisor : row.names;
    return error_at(ErrorCode::argument_invalid, text_of("config.json: /{}", families::first_word(names)),
                    "the model needs this key, a whole number from 1 to 2^32 - 1");
  }
  return uint64_t{0};
}

}  // namespace wasmquant::conversion
