// Numbers of texts in the order in which they first come, for tables that write a text once.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/list.h"

namespace wasmquant {

class TextNumbers {
 public:
  struct Found {
    uint64_t number = 0;
    bool is_new = false;
  };
  /// The number of a text that came before, or the next one.
  Found find_or_add(std::string_view text);

 private:
  void grow();

  List<std::string> texts_;
  List<uint64_t> hashes_;  // parallel to texts_
  List<uint32_t> slots_;   // open addressing, a power of two of them: number + 1, 0 = free
};

}  // namespace wasmquant
