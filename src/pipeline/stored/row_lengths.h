// How long the rows of a weight are whose codes fill their last word only in part, which tensors of such a format do not
// say. A layer reads what others of its model write, so the length is one that the model's other tensors have, or its
// config.json. Only lengths that end within the last word come into question.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

/// The lengths of one model.
class RowLengths {
 public:
  /// From config.json, which may be null: hidden_size, intermediate_size and the like, heads times their size.
  explicit RowLengths(const json::Value& config);

  /// A length that a tensor of the file has: of its rows, or as many as it has rows.
  void add(uint64_t length) { others_.push_back(length); }
  /// The number of rows of `layer`, which another layer of its module may read.
  void add_rows(std::string_view layer, uint64_t rows);
  /// The width of the embedding, which the first layers of each block read.
  void add_hidden(uint64_t length);

  /// The length of the rows of `layer`, whose words hold `capacity` codes, `per_word` each. `capacity` if no known length
  /// ends in the last word; 0 if several do.
  uint64_t of(std::string_view layer, uint64_t capacity, uint64_t per_word) const;

 private:
  struct Rows {
    std::string module;
    uint64_t rows;
  };

  List<uint64_t> hidden_, others_;
  List<Rows> joined_;  // of layers that are parts of joined ones; their readers have the same parent
};

}  // namespace wasmquant
