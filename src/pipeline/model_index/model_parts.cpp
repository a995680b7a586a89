#include "pipeline/model_index/model_parts.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"
#include "formats/part_name.h"

namespace wasmquant {
namespace {

bool is_one_model(const Part& a, const Part& b) { return a.count == b.count && a.model == b.model; }

List<uint32_t> sorted_parts(std::span<const NamedPart> files) {
  return sorted_order(files.size(), [&](uint32_t a, uint32_t b) {
    const Part &left = *files[a].part, &right = *files[b].part;
    if (!is_one_model(left, right))
      return left.count != right.count ? left.count < right.count : left.model < right.model;
    return left.number < right.number;
  });
}

// "m-00001-of-00003.gguf", or "" if the names of the model's files do not tell.
std::string name_of_part(const NamedPart& known, uint32_t number) {
  const auto name = read_part_name(known.name);
  if (!name || name->number != known.part->number || name->count != known.part->count) return {};
  PartName other = *name;
  other.number = number;
  return part_name(other);
}

// Calls `missing(part, number)` for every missing part of the model of `part`, until it returns false.
template <class F>
void find_missing(std::span<const NamedPart> files, const List<uint32_t>& order, const F& missing) {
  for (size_t first = 0, next = 0; first < order.size(); first = next) {
    const NamedPart& known = files[order[first]];
    uint32_t number = std::min(known.part->number, 1u);
    const uint32_t end = known.part->count + number;
    for (next = first; next < order.size() && is_one_model(*files[order[next]].part, *known.part); ++next) {
      for (; number < files[order[next]].part->number; ++number)
        if (!missing(known, number)) return;
      number = std::max(number, files[order[next]].part->number + 1);
    }
    for (; number < end; ++number)
      if (!missing(known, number)) return;
  }
}

}  // namespace

List<std::string> missing_parts(std::span<const NamedPart> files) {
  List<std::string> names;
  find_missing(files, sorted_parts(files), [&](const NamedPart& known, uint32_t number) {
    std::string name = name_of_part(known, number);
    const bool is_known = !name.empty();
    if (is_known) names.push_back(std::move(name));
    return is_known;
  });
  return names;
}

Result<List<uint32_t>> order_of_parts(std::span<const NamedPart> files) {
  List<uint32_t> order = sorted_parts(files);
  for (size_t i = 1; i < order.size(); ++i) {
    const NamedPart &before = files[order[i - 1]], &here = files[order[i]];
    if (here.part->count > 1 && is_one_model(*before.part, *here.part) && before.part->number == here.part->number)
      return error_at(ErrorCode::file_invalid, here.name, "is part {} of {} of a model, as is {}; give each part once",
                      here.part->number, here.part->count, before.name);
  }
  Status complete;
  find_missing(files, order, [&](const NamedPart& known, uint32_t number) {
    const std::string name = name_of_part(known, number);
    complete =
        error_at(ErrorCode::tensor_missing, known.name, "is part {} of {} of a model, and part {}{} is not here. {}",
                 known.part->number, known.part->count, number, name.empty() ? name : text_of(", {},", name),
                 name.empty() ? text_of("Parts are found by their names: call this one {} and the others likewise",
                                        part_name({"MODEL-", known.part->number, known.part->count, ".gguf"}))
                              : std::string("Give the model's folder, or all of its parts in any order"));
    return false;
  });
  if (!complete) return std::move(complete.error());
  return order;
}

}  // namespace wasmquant
