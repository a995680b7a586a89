// The Brevitas dialect: every rule of spec 2.2 and every row of 2.3.
#include <doctest/doctest.h>

#include <string>

#include "config/resolve/resolve.h"
#include "diagnostics.h"
#include "tools/brevitas/brevitas_grid.h"

using namespace wasmquant;

namespace {

std::string brevitas(const std::string& layer, const std::string& rest = R"(,"pre_quant_opt_config":[])") {
  return R"({"dialect":"brevitas","global_quant_config":{)" + layer + "}" + rest + "}";
}
// Errors only, with {} for the tensor.
std::string brevitas_errors_of(const std::string& tensor, const std::string& spec) {
  std::string text;
  for (const Diagnostic& d : config::check(brevitas("\"" + tensor + "\":" + spec)))
    if (d.severity == Severity::error) text += (text.empty() ? "" : "\n") + std::string(d.code.name()) + " " + d.where;
  const std::string place = "/global_quant_config/" + tensor;
  for (size_t at; (at = text.find(place)) != std::string::npos;) text.replace(at, place.size(), "{}");
  return text;
}

struct BrevitasCase {
  std::string text;
  std::string expected;
};

}  // namespace

TEST_CASE("brevitas: combinations that exist (spec 2.3), all others are errors") {
  for (const std::string tensor : {"weight", "input_tensors", "output_tensors"})
    for (const bool is_float : {false, true})
      for (const std::string scale : {"float", "pof2", "float32", "float16", "bfloat16"})
        for (const std::string param : {"stats", "mse"})
          for (const std::string qscheme : {"per_tensor", "per_channel", "per_group"})
            for (const bool symmetric : {true, false}) {
              std::string spec =
                  R"({"qscheme":")" + qscheme + R"(","scale_type":")" + scale + R"(","param_type":")" + param +
                  R"(","symmetric":)" + (symmetric ? "true" : "false") +
                  (is_float ? R"(,"quant_type":"float_quant","exponent_bit_width":4,"mantissa_bit_width":3})"
                            : R"(,"bit_width":4})");
              const bool weight = tensor == "weight";
              bool exists = scale == "float" || (scale == "pof2" && !is_float);
              if (!symmetric && (is_float || (scale == "pof2" && (weight || param == "mse")))) exists = false;
              if (qscheme == "per_group" || (qscheme == "per_channel" && tensor == "output_tensors")) exists = false;
              CAPTURE(tensor);
              CAPTURE(spec);
              CHECK(brevitas_errors_of(tensor, spec).empty() == exists);
            }
}

TEST_CASE("brevitas: rules of one spec") {
  const BrevitasCase cases[] = {
      {R"({})", ""},
      {R"({"bit_width":1})", "value-invalid {}/bit_width"},
      {R"({"bit_width":12})", ""},
      {R"({"bit_width":17})", "not-implemented {}/bit_width"},
      {R"({"bit_width":-9223372036854775808})", "value-invalid {}/bit_width"},
      {R"({"bit_width":16})", ""},
      {R"({"quant_type":"float_quant"})", "key-missing {}"},
      {R"({"quant_type":"float_quant","exponent_bit_width":4})", "key-missing {}"},
      {R"({"quant_type":"float_quant","exponent_bit_width":4,"mantissa_bit_width":3})", ""},
      {R"({"quant_type":"float_quant","exponent_bit_width":3,"mantissa_bit_width":2})", "value-invalid {}/bit_width"},
      {R"({"quant_type":"float_quant","exponent_bit_width":3,"mantissa_bit_width":2,"bit_width":6})", ""},
      {R"({"quant_type":"float_quant","exponent_bit_width":8,"mantissa_bit_width":7,"bit_width":16})",
       "value-invalid {}/exponent_bit_width"},
      {R"({"quant_type":"float_quant","exponent_bit_width":0,"mantissa_bit_width":7})",
       "value-invalid {}/exponent_bit_width"},
      {R"({"quant_type":"float_quant","exponent_bit_width":7,"mantissa_bit_width":0})", ""},
      {R"({"quant_type":"float_quant","exponent_bit_width":4,"mantissa_bit_width":-3,"bit_width":2})",
       "value-invalid {}/mantissa_bit_width"},
      {R"({"quant_type":"float_quant","symmetric":false,"exponent_bit_width":4,"mantissa_bit_width":3})",
       "combination-unsupported {}/symmetric"},
      {R"({"qscheme":"per_grup"})", "value-unknown {}/qscheme"},
      {R"({"dtype":"int8"})", "key-unknown {}/dtype"},
      {R"([])", "type-invalid {}"},
  };
  for (const BrevitasCase& c : cases) {
    CAPTURE(c.text);
    CHECK(brevitas_errors_of("weight", c.text) == c.expected);
  }
}

TEST_CASE("brevitas: rules of a config") {
  const std::string w = R"("weight":{"bit_width":8})", wi = w + R"(,"input_tensors":{})";
  const std::string pre = R"(,"pre_quant_opt_config":)", algo = R"(,"pre_quant_opt_config":[],"algo_config":)";
  const std::string inputs = "\nnote needs-calibration /global_quant_config";
  const std::string kG = "/global_quant_config";
  const BrevitasCase cases[] = {
      {brevitas(w), ""},
      {brevitas(w, ""), "warning default-preprocess "},
      {R"({"dialect":"brevitas"})", "error key-missing \nwarning default-preprocess "},
      {brevitas(""), "warning nothing-quantized "},
      {brevitas(wi), "note needs-calibration /global_quant_config"},
      {brevitas(wi + R"(,"bias":{"bit_width":32})"),
       "error not-implemented /global_quant_config/bias\nnote needs-calibration /global_quant_config"},
      {brevitas(w + R"(,"bias":{"bit_width":32})"),
       "error key-missing " + kG + "/bias\nerror not-implemented " + kG + "/bias"},
      {brevitas(wi + R"(,"bias":{"bit_width":12})"),
       "error value-invalid " + kG + "/bias/bit_width\nerror not-implemented " + kG + "/bias" + inputs},
      {brevitas(wi + R"(,"bias":{"quant_type":"float_quant"})"),
       "error value-invalid " + kG + "/bias/quant_type\nerror not-implemented " + kG + "/bias" + inputs},
      {brevitas(
           wi +
           R"(,"bias":{"qscheme":"per_channel","symmetric":false,"scale_type":"pof2","param_type":"mse","mantissa_bit_width":3})"),
       "error not-implemented " + kG + "/bias\nwarning key-ignored " + kG + "/bias/qscheme\nwarning key-ignored " + kG +
           "/bias/symmetric\nwarning key-ignored " + kG + "/bias/scale_type\nwarning key-ignored " + kG +
           "/bias/param_type\nwarning key-ignored " + kG + "/bias/mantissa_bit_width" + inputs},
      {brevitas(w + R"(,"input_tensors":{"qscheme":"per_channel"})"),
       "warning key-ignored " + kG + "/input_tensors/qscheme" + inputs},
      {brevitas(w, R"(,"pre_quant_opt_config":[],"backend":"fx")"), "error value-invalid /backend"},
      {brevitas(w, R"(,"pre_quant_opt_config":[],"backend":"eager")"), "error value-unknown /backend"},
      {brevitas(w, R"(,"pre_quant_opt_config":[],"brevitas_version":"0.9")"), "error value-unknown /brevitas_version"},
      {brevitas(w, pre + R"([{"name":"Preprocess","trace_model":false}])"), "note no-effect /pre_quant_opt_config/0"},
      {brevitas(w, pre + R"([{"name":"Preprocess","channel_splitting_ratio":0.1}])"),
       "error not-implemented /pre_quant_opt_config/0/channel_splitting_ratio"},
      {brevitas(w, pre + R"([{"name":"ActivationEqualization"}])"),
       "warning preprocess-order /pre_quant_opt_config\nnote equalization-folded /pre_quant_opt_config/0"},
      {brevitas(w, pre + R"([{"name":"ActivationEqualization"},{"name":"Preprocess"}])"),
       "warning preprocess-order /pre_quant_opt_config\nnote equalization-folded /pre_quant_opt_config/0"},
      {brevitas(w, pre + R"([{"name":"Preprocess"},{"name":"ActivationEqualization","is_layerwise":false}])"),
       "error value-invalid /pre_quant_opt_config/1/is_layerwise"},
      {brevitas(w, pre + R"([{"name":"Preprocess"},{"name":"ActivationEqualization","alpha":2}])"),
       "error value-invalid /pre_quant_opt_config/1/alpha\nnote equalization-folded /pre_quant_opt_config/1"},
      {brevitas(w, pre + R"([{"name":"Preprocess"},{"name":"GPTQ"}])"),
       "error value-invalid /pre_quant_opt_config/1/name"},
      {brevitas(w, algo + R"([{"name":"GPTQ","act_order":true}])"), ""},
      {brevitas(w, algo + R"([{"name":"GPTQ","desc_act":true}])"), "error key-unknown /algo_config/0/desc_act"},
      {brevitas(w, algo + R"([{"name":"GPTQ"},{"name":"GPTQ"}])"), "error value-invalid /algo_config/1"},
      {brevitas(w, algo + R"([{"name":"GPFQ"}])"), "error key-missing /algo_config/0"},
      {brevitas(wi, algo + R"([{"name":"GPFA2Q","accumulator_bit_width":14}])"),
       "error not-implemented /algo_config/0\nnote needs-calibration /global_quant_config"},
      {brevitas(w, algo + R"([{"name":"CalibrateBatchNorm"},{"name":"BiasCorrection"}])"),
       "error not-implemented /algo_config/0"},
      {brevitas(w, algo + R"([{"name":"GPTQQ"}])"), "error value-unknown /algo_config/0/name"},
      {brevitas(w, algo + R"([{}, 3])"), "error value-unknown /algo_config/0/name\nerror type-invalid /algo_config/1"},
      {brevitas(w, R"(,"pre_quant_opt_config":[],"exclude":["re:("])"), "error pattern-invalid /exclude/0"},
      {brevitas(w, R"(,"pre_quant_opt_config":[],"layer_quant_config":{})"), "error key-unknown /layer_quant_config"},
      {R"({"global_quant_config":{"weight":{"bit_width":4}},"pre_quant_opt_config":[]})",
       ""},  // recognised by its specs
      {R"({"global_quant_config":{"weight":{"quant_type":"int_quant"}},"pre_quant_opt_config":[]})", ""},
  };
  for (const BrevitasCase& c : cases) {
    CAPTURE(c.text);
    CHECK(problems_of(c.text) == c.expected);
  }
}

TEST_CASE("brevitas: number formats of a spec") {
  const auto spec = [](const std::string& text, const std::string& rest = R"(,"pre_quant_opt_config":[])") {
    auto parsed = config::parse_text(brevitas(R"("weight":)" + text + R"(,"input_tensors":)" + text, rest));
    REQUIRE(static_cast<bool>(parsed));
    return parsed->config.global;
  };
  const BrevitasVersion now = BrevitasVersion::v0_12_1;
  const LayerConfig plain = spec(R"({"bit_width":4})");
  CHECK(plain.weight[0].dtype == Dtype::int4);
  CHECK(plain.weight[0].grid == brevitas_grid(true, false, now));
  CHECK(plain.weight[0].observer == ObserverId::PerTensorMinMaxObserver);
  CHECK(plain.input_tensors[0].grid == brevitas_grid(false, false, now));
  CHECK(plain.input_tensors[0].observer == ObserverId::PerTensorMeanPercentileObserver);
  CHECK(spec(R"({"symmetric":false})").weight[0].dtype == Dtype::uint8);
  const LayerConfig pof2 = spec(R"({"scale_type":"pof2"})");
  CHECK(pof2.weight[0].grid == brevitas_grid(true, true, now));
  CHECK(pof2.weight[0].scale_type == ScaleType::pof2);
  const LayerConfig mse = spec(R"({"param_type":"mse"})");
  CHECK(mse.weight[0].observer == ObserverId::PerTensorThresholdMSEObserver);
  CHECK(mse.weight[0].observer_options.search == SearchMethod::grid);
  CHECK(mse.input_tensors[0].observer == ObserverId::PerTensorMeanThresholdMSEObserver);
  CHECK(spec(R"({"qscheme":"per_channel","param_type":"mse"})").weight[0].observer ==
        ObserverId::PerChannelThresholdMSEObserver);
  const LayerConfig old =
      spec(R"({"param_type":"mse","scale_type":"pof2"})", R"(,"pre_quant_opt_config":[],"brevitas_version":"0.10.3")");
  CHECK(old.weight[0].observer_options.search == SearchMethod::sections);
  CHECK(old.weight[0].grid == brevitas_grid(true, true, BrevitasVersion::v0_10_3));
  const LayerConfig next =
      spec(R"({"param_type":"mse","scale_type":"pof2"})", R"(,"pre_quant_opt_config":[],"brevitas_version":"0.13")");
  CHECK(next.weight[0].observer_options.search == SearchMethod::interval);
  CHECK(next.weight[0].grid == brevitas_grid(true, true, now));
  const LayerConfig fp = spec(R"({"quant_type":"float_quant","exponent_bit_width":4,"mantissa_bit_width":3})");
  CHECK(fp.weight[0].dtype == Dtype::minifloat);
  CHECK(float_format_of(fp.weight[0]).max_finite() == 480.0);
}
