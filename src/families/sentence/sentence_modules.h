// What sentence-transformers does with the states of an encoder's tokens: modules.json, and config.json of each module.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant::families {

/// A file of the model's folder by its path; empty: missing.
class SiblingFiles {
 public:
  virtual std::string_view sibling_file(std::string_view name) const noexcept = 0;

 protected:
  ~SiblingFiles() = default;
};

/// One module behind the encoder.
struct SentenceModule {
  std::string path;  // of its folder: "2_Dense"
  std::string type;  // class without its package: "Dense"
  // Of Dense:
  uint32_t inputs = 0, outputs = 0;
  bool has_bias = false;
  std::string activation;  // class without its package: "Tanh"
  std::string unusual;     // the key of its config.json that makes it more than activation(W x + b); empty: none
};

/// The modules in order, without the encoder and Dropout, which does nothing after training.
struct SentenceModules {
  List<SentenceModule> list;
  List<std::string>
      pooling;  // its modes: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken; empty: not said
  std::string pooling_file;  // "1_Pooling/config.json"
};

/// Without modules.json only `1_Pooling/config.json` is read. Errors: json-invalid with file and byte; file-invalid for a
/// value of the wrong type, with file and pointer.
Result<SentenceModules> sentence_modules(const SiblingFiles& files);

/// `{pooling: text[], poolingFile, modules: [{path, type, inputs?, outputs?, hasBias?, activation?, unusual?}]}`
json::Value to_json(const SentenceModules& modules);

}  // namespace wasmquant::families
