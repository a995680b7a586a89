// The sizes by which rows of a model's tensors are divided, by a letter.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "gguf_conversion/architectures/hyperparameters.h"

namespace wasmquant::conversion {

/// A view of `config`, which must outlive it.
class LayoutSizes {
 public:
  LayoutSizes(const json::Value& config, const Hyperparameters& parameters) noexcept
      : config_(&config), parameters_(parameters) {}

  /// Digits are themselves. h: heads, g: those of keys and values, r: the queries of one of them, d: the width of a head, x: experts.
  /// Latent attention: n: the width of a key without its position, v: of a value. Linear attention: k: heads of keys, e: of
  /// values to one of keys, s: the width of a key, w: of a value. G: groups of a state space model's norm, D: its
  /// channels, S: the width of its state. p: positions
  /// up to the padding token's. Errors: argument-invalid naming the key of config.json.
  Result<uint64_t> named(char letter) const;
  const json::Value& config() const noexcept { return *config_; }

 private:
  const json::Value* config_;
  Hyperparameters parameters_;
};

}  // namespace wasmquant::conversion
