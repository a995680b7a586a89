#include "model/portion.h"

namespace wasmquant::model {

std::vector<Portion> portions_of(std::span<const uint32_t> lengths, const SourceText& source) {
  std::vector<Portion> out;
  size_t at = 0, source_at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t end = at + lengths[i], source_end = source_at + (source.lengths.empty() ? 0 : source.lengths[i]);
    const bool is_full =
        out.empty() || end - out.back().begin > kPortionTokens || source_end - out.back().source_begin > kPortionTokens;
    if (is_full) out.push_back({i, 0, at, at, source_at});
    ++out.back().sequences;
    out.back().end = at = end;
    out.back().source_end = source_at = source_end;
  }
  return out;
}

}  // namespace wasmquant::model
