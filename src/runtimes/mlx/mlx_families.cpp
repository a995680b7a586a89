#include "runtimes/mlx/mlx_families.h"

#include "core/message.h"
#include "families/word_list.h"

namespace wasmquant::mlx {
namespace {

constexpr Family kFamilies[] = {
#define WASMQUANT_REARRANGED(types, traits, experts, fused, names) {types, traits, experts, fused, names},
#define WASMQUANT_TEXT_CLASS(type, class)
#define WASMQUANT_NOT_RESTORED(types, what)
#define WASMQUANT_NOT_WRITTEN(types, what)
#include "families/table/rearranged.def"
};
struct Words {
  std::string_view types, text;
};
constexpr Words kTextClasses[] = {
#define WASMQUANT_REARRANGED(types, traits, experts, fused, names)
#define WASMQUANT_TEXT_CLASS(type, class) {type, class},
#define WASMQUANT_NOT_RESTORED(types, what)
#define WASMQUANT_NOT_WRITTEN(types, what)
#include "families/table/rearranged.def"
};
constexpr Words kRefused[] = {
#define WASMQUANT_REARRANGED(types, traits, experts, fused, names)
#define WASMQUANT_TEXT_CLASS(type, class)
#define WASMQUANT_NOT_RESTORED(types, what) {types, what},
#define WASMQUANT_NOT_WRITTEN(types, what)
#include "families/table/rearranged.def"
};
constexpr Words kNotWritten[] = {
#define WASMQUANT_REARRANGED(types, traits, experts, fused, names)
#define WASMQUANT_TEXT_CLASS(type, class)
#define WASMQUANT_NOT_RESTORED(types, what)
#define WASMQUANT_NOT_WRITTEN(types, what) {types, what},
#include "families/table/rearranged.def"
};

template <class Row, size_t kRows>
const Row* row_named(const Row (&rows)[kRows], std::string_view type) {
  for (const Row& row : rows)
    if (families::is_word(row.types, type)) return &row;
  return nullptr;
}

std::string_view text_of_row(const Words* row) noexcept { return row == nullptr ? std::string_view() : row->text; }

}  // namespace

std::optional<Family> row_of(const families::ModelFamily& family) {
  const Family *own = row_named(kFamilies, family.model_type), *text = row_named(kFamilies, family.text_model_type);
  if (own == nullptr) return std::nullopt;
  Family row = *own;
  if (text == nullptr) return row;
  row.traits |= text->traits;
  if (row.experts.empty()) row.experts = text->experts, row.fused = text->fused;
  return row;
}

std::string_view text_class_of(std::string_view type) noexcept { return text_of_row(row_named(kTextClasses, type)); }

std::string_view refused_part_of(std::string_view type) noexcept { return text_of_row(row_named(kRefused, type)); }

std::string write_limit(const families::ModelFamily& family) {
  const std::optional<Family> row = row_of(family);
  if (!row) return text_of("this family ({}) is not known to be one of mlx-lm's", family.model_type);
  if (const Words* const other = row_named(kNotWritten, family.model_type))
    return text_of("mlx-lm's class of this family ({}) {}", family.model_type, other->text);
  if (row->traits != 0 || !row->fused.empty() || !row->names.empty())
    return text_of("mlx-lm renames or rearranges the tensors of this family ({}), which is undone here, and not done",
                   family.model_type);
  return {};
}

}  // namespace wasmquant::mlx
