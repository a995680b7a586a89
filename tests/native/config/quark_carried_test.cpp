// What Quark's configs carry that this version does not run: algorithm configs (spec quark 1.5), kv cache, softmax,
// shared scales.
#include <doctest/doctest.h>

#include <string>

#include "diagnostics.h"

namespace {

// {} stands for the place of the algorithm.
std::string quark_carried_errors_of(const std::string& algorithm, const std::string& weight = R"({"dtype":"int8"})",
                                    const std::string& rest = "") {
  std::string text;
  for (const wasmquant::Diagnostic& d : wasmquant::config::check(
           R"({"global_quant_config":{"weight":)" + weight + R"(},"algo_config":[)" + algorithm + "]" + rest + "}")) {
    if (d.code == "no-effect") continue;
    text += (text.empty() ? "" : "\n") + std::string(d.code.name()) + " " +
            (d.where.starts_with("/algo_config/0") ? "{}" + d.where.substr(14) : d.where);
  }
  return text;
}

struct QuarkCarriedCase {
  std::string text;
  std::string expected;
};

const std::string kLayers = R"("scaling_layers":{"first_layer":{},"middle_layers":{},"last_layer":{}})";

}  // namespace

TEST_CASE("algorithm configs, with old and new fields") {
  const QuarkCarriedCase cases[] = {
      {R"({"name":"smooth","alpha":0.5,"scale_clamp_min":0.001,"scaling_layers":[],"model_decoder_layers":"m"})", ""},
      {R"({"name":"smoothquant","alpha":1})", ""},
      {R"({"name":"smooth","alpha":"x"})", "type-invalid {}/alpha"},
      {R"({"name":"smooth","alpha":-1})", "value-invalid {}/alpha"},
      {R"({"name":"smooth","alhpa":1})", "key-unknown {}/alhpa"},
      {R"({"name":"awq","scaling_layers":[{"prev_op":"a","layers":["b"],"inp":"b"}],"num_attention_heads":8,"num_key_value_heads":8})",
       ""},
      {R"({"name":"awq","bit":8,"sym":true})", ""},
      {R"({"name":"awq","bit":4})", "contradiction {}/bit"},
      {R"({"name":"gptq","sym":false})", "contradiction {}/sym"},
      {R"({"name":"autosmoothquant","compute_scale_loss":"RMSE"})", ""},
      {R"({"name":"autosmoothquant","compute_scale_loss":"rmse"})", "value-invalid {}/compute_scale_loss"},
      {R"({"name":"gptq","damp_percent":0.01,"desc_act":true,"static_groups":true,"true_sequential":true})", ""},
      {R"({"name":"gptq","static_groups":false,"desc_act":true,"on_worse":"nearest"})", ""},
      {R"({"name":"gptq","static_groups":false,"desc_act":false})", ""},
      {R"({"name":"gptaq","alpha":0.25,"static_groups":false,"on_worse":"keep"})", ""},
      {R"({"name":"gpfq","on_worse":"best"})", "value-invalid {}/on_worse"},
      {R"({"name":"biascorrection","on_worse":"nearest"})", "key-unknown {}/on_worse"},
      {R"({"name":"gptq","alpha":0.25})", "key-unknown {}/alpha"},
      {R"({"name":"gptq","block_size":0})", "value-invalid {}/block_size"},
      {R"({"name":"qronos","block_size":-1,"beta":1e4})", "value-invalid {}/block_size"},
      {R"({"name":"qronos","static_groups":false})", ""},
      {"{\"name\":\"rotation\"," + kLayers + "}", ""},
      {R"({"name":"rotation"})", "key-missing {}"},
      {R"({"name":"rotation","scaling_layers":{"first_layer":{}}})",
       "key-missing {}/scaling_layers\nkey-missing {}/scaling_layers"},
      {"{\"name\":\"rotation\",\"random_r1\":true,\"rotation_size\":64," + kLayers + "}",
       "value-invalid {}/rotation_size"},
      {"{\"name\":\"rotation\",\"r1\":false,\"online_r1_rotation\":true," + kLayers + "}",
       "value-invalid {}/online_r1_rotation"},
      {"{\"name\":\"rotation\",\"r1\":false,\"online_config\":{}," + kLayers + "}", "value-invalid {}/online_config"},
      {"{\"name\":\"rotation\",\"r3\":true,\"trainable\":true," + kLayers + "}", "value-invalid {}/trainable"},
      {"{\"name\":\"quarot\",\"trainable\":true," + kLayers + "}", "value-invalid {}/trainable"},
      {"{\"name\":\"rotation\",\"train_smooth\":true," + kLayers + "}",
       "value-invalid {}/train_smooth\nvalue-invalid {}/train_smooth"},
      {"{\"name\":\"rotation\",\"trainable\":true,\"train_smooth\":true,\"smooth_positions\":[]," + kLayers + "}", ""},
      {R"({"name":"svdquant","svd_rank":16,"use_gptq":true,"gptq_percdamp":0.01})", "not-implemented {}"},
      {R"({"name":"autoround","iters":200,"lr":0.005,"enable_minmax_tuning":true,"batch_size":8})",
       "not-implemented {}"},
      {R"({"name":"twobitscalar","bits":2,"group_size":64,"calib_batches":null,"enable_incoherence":true})",
       "not-implemented {}"},
      {"{\"name\":\"rotation\",\"optimized_rotation_path\":\"r.safetensors\"," + kLayers + "}",
       "not-implemented {}/optimized_rotation_path"},
      {"{\"name\":\"quarot\",\"random\":false,\"optimized_rotation_path\":null," + kLayers + "}", ""},
      {R"({"name":"gpfq","act_order":true,"inside_layer_modules":["down_proj"]})", ""},
      {R"({"name":"gpfq","desc_act":true})", "key-unknown {}/desc_act"},
      {R"({"name":"cle","equalize_iterations":20,"equalize_merge_bias":false})", ""},
      {R"({"name":"cle","equalize_iterations":-1})", "value-invalid {}/equalize_iterations"},
      {R"({"name":"activationequalization","is_layerwise":false,"alpha":0.5})", ""},
      {R"({"name":"biascorrection","alpha":1})", "key-unknown {}/alpha"},
      {"{\"name\":\"rotation\",\"random_r1\":true,\"seed\":3," + kLayers + "}", ""},
      {R"({"name":"svdquant","svd_rank":1.5})", "type-invalid {}/svd_rank\nnot-implemented {}"},
      {R"({"name":"AWQ"})", ""},
      {R"({"name":"awk"})", "value-unknown {}/name"},
      {R"([])", "key-missing {}"},
  };
  for (const QuarkCarriedCase& c : cases) {
    CAPTURE(c.text);
    CHECK(quark_carried_errors_of(c.text) == c.expected);
  }
  const std::string grouped = R"({"dtype":"int4","qscheme":"per_group","group_size":64})";
  CHECK(quark_carried_errors_of(R"({"name":"gptq","group_size":128,"bit":4})", grouped) ==
        "contradiction {}/group_size");
  CHECK(quark_carried_errors_of(R"({"name":"gptq","group_size":64})", grouped) == "");
  CHECK(quark_carried_errors_of(R"({"name":"twobitscalar","group_size":128})", grouped) == "not-implemented {}");
}

TEST_CASE("kv cache, softmax, shared scales, rotation before the cache") {
  const std::string int8 = R"({"dtype":"int8"})";
  const QuarkCarriedCase cases[] = {
      {R"(,"kv_cache_group":["*k_proj","*v_proj"],"min_kv_scale":0.0,"kv_cache_post_rope":false)", ""},
      {R"(,"kv_cache_group":[1])", "type-invalid /kv_cache_group/0"},
      {R"(,"min_kv_scale":-1)", "value-invalid /min_kv_scale"},
      {R"(,"shared_scale_groups":[["q_proj","k_proj"],["gate","up"]])", ""},
      {R"(,"shared_scale_groups":["q_proj",[2]])",
       "type-invalid /shared_scale_groups/0\ntype-invalid /shared_scale_groups/1/0"},
      {R"(,"softmax_quant_spec":null,"quant_mode":"fx_graph_mode")", ""},
      {R"(,"softmax_quant_spec":{"dtype":"fp8_e4m3"})", "not-implemented /softmax_quant_spec"},
      {R"(,"keep_prequantized_layers":false)", "not-implemented /keep_prequantized_layers"},
      {R"(,"quant_mode":"fx")", "value-unknown /quant_mode"},
      {R"(,"layer_quant_config":{"a":{"weight":{"dtype":"int8"},"target_device":"tpu"}})",
       "value-unknown /layer_quant_config/a/target_device"},
  };
  for (const QuarkCarriedCase& c : cases) {
    CAPTURE(c.text);
    CHECK(quark_carried_errors_of("", int8, c.text) == c.expected);
  }
  const std::string cache = R"(,"kv_cache_quant_config":{"*k_proj":{"output_tensors":{"dtype":"fp8_e4m3"}}})";
  const std::string rotation = "{\"name\":\"rotation\",\"r3\":true," + kLayers + "}";
  CHECK(quark_carried_errors_of(rotation, int8, cache) == "rotation-kv-cache {}/r3");
  CHECK(quark_carried_errors_of(rotation, int8, cache + R"(,"kv_cache_post_rope":true)") == "");
}
