#include "model/source_text.h"

namespace wasmquant::model {

SplitText split_text(const Architecture& a, std::span<const int32_t> tokens, std::span<const uint32_t> lengths,
                     bool predicts) {
  SplitText out;
  const int32_t* at = tokens.data();
  for (const uint32_t length : lengths) {
    const uint32_t source = predicts && length > 1 ? length / 2 + 1 : length;
    out.source.lengths.push_back(source);
    out.source.tokens.insert(out.source.tokens.end(), at, at + source);
    out.lengths.push_back(length - source + 1);
    out.tokens.push_back(static_cast<int32_t>(a.decoder.start));
    out.tokens.insert(out.tokens.end(), at + source, at + length);
    at += length;
  }
  return out;
}

}  // namespace wasmquant::model
