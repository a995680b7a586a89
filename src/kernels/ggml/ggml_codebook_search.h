// The entry of a codebook that is nearest to some elements, as ggml looks for it: where the nearest codes are an entry it
// is that one, otherwise one of those that are closest to them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ggml/ggml_codebook.h"

namespace wasmquant::kernels {

/// For every combination of codes, its entry or its neighbours: those at the nearest two distances (iq2_s: one; iq3_s and
/// iq1: three), nearer ones first, then in the book's order.
class CodebookSearch {
 public:
  explicit CodebookSearch(GgmlType type);

  /// Codes to an entry: -1 if they are none.
  int32_t entry_of(const uint8_t* codes) const noexcept;
  /// Calls visit(entry) for each neighbour of codes that are no entry.
  template <class Visit>
  void for_each_neighbour(const uint8_t* codes, Visit visit) const noexcept {
    const uint16_t* const at = near_.data() + ~place_[number_of(codes)];
    for (size_t i = 1; i <= at[0]; ++i) visit(at[i]);
  }
  const uint8_t* codes_of(uint32_t entry) const noexcept { return book_.digits + entry * book_.length; }
  const Codebook& book() const noexcept { return book_; }

 private:
  uint32_t number_of(const uint8_t* codes) const noexcept;

  const Codebook book_;
  std::vector<int32_t> place_;  // [base^length]: an entry, or ~ the place in near_ of its neighbours' count
  std::vector<uint16_t> near_;
};

/// Made at first use. Requires has_codebook.
const CodebookSearch& search_of(GgmlType type) noexcept;

}  // namespace wasmquant::kernels
