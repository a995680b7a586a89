// Any bytes as the files of a Hugging Face folder: config.json, tokenizer.json, tokenizer_config.json and
// tokenizer.model, separated by 0xFF. Nothing may break; what comes out must be metadata that can be written and read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "gguf_conversion/conversion.h"
#include "gguf_conversion/recipe.h"

namespace {

using namespace wasmquant;

std::string_view take_part(std::string_view& text) {
  const size_t end = text.find('\xFF');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  conversion::ModelFiles files;
  const auto config = json::parse(take_part(text), json::kPython);
  files.config = &config;
  files.tokenizer.tokenizer = take_part(text);
  files.tokenizer.tokenizer_config = take_part(text);
  files.tokenizer.sentencepiece = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  const std::vector<uint64_t> matrix = {8, 16}, vector = {16};
  const conversion::SourceTensor tensors[] = {{"model.embed_tokens.weight", matrix},
                                              {"model.layers.0.self_attn.q_proj.weight", matrix},
                                              {"model.layers.0.input_layernorm.weight", vector}};
  DiagnosticList diagnostics;
  const auto converted = conversion::convert(files, tensors, diagnostics);
  if (!converted) return 0;
  std::vector<gguf::NewTensor> entries;
  for (const auto& tensor : converted->tensors) {
    for (uint64_t row = 0; row < 8; ++row)
      if (tensor.source_row(row) >= 8) std::abort();
    entries.push_back({tensor.name, GgmlType::f32, tensor.shape});
  }
  (void)conversion::facts_of(converted->metadata);
  const auto header = gguf::write_header(converted->metadata, entries);
  if (!header) std::abort();
  const std::vector<uint8_t> bytes(header->bytes.begin(), header->bytes.end());
  if (!gguf::read_index(bytes, header->file_bytes)) std::abort();
  return 0;
}
