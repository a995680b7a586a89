// Words of the table to runs of rows: parts of one group, then of all groups.
#include "gguf_conversion/tensors/row_groups.h"

#include <numeric>

#include "core/message.h"
#include "families/config_reader.h"

namespace wasmquant::conversion {
namespace {

std::string_view take_until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text = at == text.npos ? std::string_view() : text.substr(at + 1);
  return taken;
}

struct GroupPart {
  uint64_t rows = 0, times = 1;
  bool takes_rest = false, is_transposed = false;
  size_t target = 0;
};

Result<uint64_t> product_of(std::string_view factors, const LayoutSizes& sizes) {
  uint64_t product = 1;
  for (const char c : factors) {
    TRY(factor, sizes.named(c));
    if (__builtin_mul_overflow(product, factor, &product)) product = 0;
  }
  return product;
}

Result<List<GroupPart>> read_parts(std::string_view targets, const LayoutSizes& sizes) {
  List<GroupPart> parts;
  for (size_t target = 0; !targets.empty(); ++target)
    for (std::string_view words = families::first_word(targets); !words.empty();) {
      std::string_view word = take_until(words, ',');
      GroupPart& part = parts.emplace_back();
      part.target = target;
      part.is_transposed = word.ends_with('\'');
      if (part.is_transposed || word.ends_with('^')) word.remove_suffix(1);
      part.takes_rest = word == "*";
      if (part.takes_rest) continue;
      TRY(rows, product_of(take_until(word, '*'), sizes));
      TRY(times, product_of(word, sizes));
      part.rows = rows;
      part.times = times;
    }
  return parts;
}

// Cuts them to the same length.
void make_equal(List<SourceRows>& rows) {
  uint64_t length = 0;
  for (const SourceRows& some : rows) length = std::gcd(length, some.count);
  List<SourceRows> equal;
  for (const SourceRows& some : rows)
    for (uint64_t at = 0; at < some.count; at += length)
      equal.push_back({some.source, some.first + at, length, some.is_transposed});
  rows = std::move(equal);
}

// What the words say of a tensor: behind `first` rows `count` groups of `whole` rows, each of `parts`.
struct Division {
  uint64_t first = 0, count = 0, whole = 0;
  List<GroupPart> parts;
};

Result<Division> read_division(std::string_view groups, const LayoutSizes& sizes, const SourceTensor& tensor,
                               uint64_t rows) {
  Division out;
  groups.remove_prefix(1);
  TRY(count, product_of(take_until(groups, '/'), sizes));
  out.count = count;
  const std::string_view words = take_until(groups, '/');
  TRY(parts, read_parts(words, sizes));
  out.parts = std::move(parts);
  if (!groups.empty()) {
    TRY(front, product_of(groups, sizes));
    out.first = front;
  }
  const auto mismatch = [&] {
    return error_at(ErrorCode::shape_mismatch, tensor.name, "{} rows are not {} groups of those that config.json tells",
                    rows, count);
  };
  if (count == 0 || out.first > rows || (rows - out.first) % count != 0) return mismatch();
  out.whole = (rows - out.first) / count;
  uint64_t group = 0;
  for (const GroupPart& part : out.parts) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(part.rows, part.times, &size) || size > out.whole || (size == 0 && !part.takes_rest))
      return mismatch();
    group += size;
  }
  for (GroupPart& part : out.parts) {
    if (!part.takes_rest) continue;
    if (group >= out.whole) return mismatch();
    part.rows = out.whole - group;
    group = out.whole;
  }
  if (group != out.whole) return mismatch();
  return out;
}

}  // namespace

Result<List<List<SourceRows>>> divide_rows(std::string_view groups, const LayoutSizes& sizes, uint32_t source,
                                           const SourceTensor& tensor, uint64_t rows) {
  TRY(division, read_division(groups, sizes, tensor, rows));
  const uint64_t first = division.first, whole = division.whole;
  List<List<SourceRows>> targets;
  uint64_t at = first;
  for (const GroupPart& part : division.parts) {
    while (targets.size() <= part.target) targets.emplace_back();
    List<SourceRows>& target = targets[part.target];
    if (targets.size() == 1 && target.empty() && first != 0) target.push_back({source, 0, first, false});
    for (uint64_t time = 0; time < part.times; ++time, at += part.rows)
      for (uint64_t g = 0; g < division.count; ++g)
        target.push_back({source, at + g * whole, part.rows, part.is_transposed});
  }
  for (List<SourceRows>& target : targets) make_equal(target);
  return targets;
}

Result<std::vector<uint64_t>> rows_of_parts(std::string_view groups, const LayoutSizes& sizes,
                                            const SourceTensor& tensor, uint64_t rows) {
  if (groups.empty()) return std::vector<uint64_t>{rows};
  TRY(division, read_division(groups, sizes, tensor, rows));
  std::vector<uint64_t> out;
  for (const GroupPart& part : division.parts) out.push_back(part.rows * part.times);
  return out;
}

}  // namespace wasmquant::conversion
