// How a host drives a reader of headers: it asks what the reader needs of the file's beginning, and gives it.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/result.h"

namespace test_files {

/// Asks `need`, gives a random part of what is missing, and so on; then `read`. Both only ever see what was given.
template <class Need, class Read>
auto read_prefix_in_pieces(std::span<const uint8_t> file, std::mt19937& random, Need need, Read read)
    -> decltype(read(file, file.size())) {
  std::vector<uint8_t> prefix;
  for (;;) {
    const auto needed = need(prefix, file.size());
    if (!needed) return needed.error();
    if (needed->bytes == 0) return read(prefix, file.size());
    if (needed->bytes <= prefix.size() || needed->bytes > file.size())
      return wasmquant::Error{wasmquant::ErrorCode::state_invalid, "need",
                              "asks for what it has, or for what is not there"};
    const size_t size = prefix.size() + 1 + random() % (needed->bytes - prefix.size());
    prefix.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    prefix.shrink_to_fit();  // a read beyond the piece is then seen by the sanitizer
  }
}

}  // namespace test_files
