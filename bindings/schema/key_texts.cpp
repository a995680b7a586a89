#include "key_texts.h"

#include <string_view>

namespace wasmquant {
namespace {

json::Value row_of(std::string_view key, std::string_view type, std::string_view text) {
  json::Value row;
  row.set("key", key);
  row.set("type", type);
  row.set("text", text);
  return row;
}

}  // namespace

#define WASMQUANT_KEY_TEXT(key, type, text, ...) row_of(key, type, text),

json::Value key_texts() {
  json::Value out;
  out.set("", json::Array{
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_TEXT
#include "config/dialects/every_dialect_keys.def"
              });
  out.set("QConfig", json::Array{
#define WASMQUANT_CONFIG_KEY WASMQUANT_KEY_TEXT
#include "tools/quark/keys.def"
                     });
  out.set("QLayerConfig", json::Array{
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_TEXT
#include "tools/quark/keys.def"
                          });
  out.set("QTensorConfig", json::Array{
#define WASMQUANT_SPEC_KEY WASMQUANT_KEY_TEXT
#include "tools/quark/keys.def"
                           });
  out.set("BrevitasConfig", json::Array{
#define WASMQUANT_CONFIG_KEY WASMQUANT_KEY_TEXT
#include "tools/brevitas/keys.def"
                            });
  out.set("BrevitasLayerConfig", json::Array{
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_TEXT
#include "tools/brevitas/keys.def"
                                 });
  out.set("BrevitasTensorConfig", json::Array{
#define WASMQUANT_TENSOR_KEY WASMQUANT_KEY_TEXT
#include "tools/brevitas/keys.def"
                                  });
  out.set("QuantizationMap", json::Array{
#define WASMQUANT_MAP_KEY WASMQUANT_KEY_TEXT
#include "tools/aihwkit/keys.def"
                             });
  out.set("QuantizedModuleConfig", json::Array{
#define WASMQUANT_MODULE_KEY WASMQUANT_KEY_TEXT
#include "tools/aihwkit/keys.def"
                                   });
  out.set("QuantizationConfig", json::Array{
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_TEXT
#include "tools/aihwkit/keys.def"
                                });
  out.set("WeightQuantConfig", json::Array{
#define WASMQUANT_WEIGHT_KEY WASMQUANT_KEY_TEXT
#include "tools/aihwkit/keys.def"
                               });
  out.set("ActivationQuantConfig", json::Array{
#define WASMQUANT_ACTIVATION_KEY WASMQUANT_KEY_TEXT
#include "tools/aihwkit/keys.def"
                                   });
  out.set("GgufConfig", json::Array{
#define WASMQUANT_RECIPE_KEY WASMQUANT_KEY_TEXT
#include "config/dialects/gguf_keys.def"
                        });
  return out;
}

}  // namespace wasmquant
