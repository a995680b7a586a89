// Everything JavaScript can call. Types and contracts of each name: web/lib/engine/module.ts.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <cstdlib>

#include "activation_functions.h"
#include "config/config_api.h"
#include "config/dialects/dialects.h"
#include "config/dialects/write.h"
#include "config/presets.h"
#include "core/list.h"
#include "marshal.h"
#include "model_functions.h"
#include "model_objects.h"
#include "tensor_functions.h"
#include "version.h"

namespace wasmquant::bindings {
namespace {

Address allocate(uint32_t bytes) { return reinterpret_cast<Address>(std::malloc(bytes)); }
void release(Address at) { std::free(pointer<void>(at)); }
/// The module's WebAssembly.Memory.
emscripten::val memory() { return emscripten::val::module_property("wasmMemory"); }
int live_objects() { return Counted::live; }

BoundPlan* plan_of(const BoundModelIndex& model, std::string config, std::string options) {
  return new BoundPlan(model, config, options);  // JavaScript owns it: delete()
}

std::string version() {
  json::Value out;
  out.set("library", kVersion);
  out.set("compiler", kCompiler);
  return ok(std::move(out));
}

std::string presets() {
  json::Array out;
  for (const config::Preset& preset : config::presets()) {
    json::Value row;
    row.set("name", preset.name);
    row.set("title", preset.title);
    row.set("description", preset.description);
    auto config = json::parse(preset.config_text());
    if (!config) return fail(config.error());
    row.set("config", std::move(*config));
    out.push_back(std::move(row));
  }
  return ok(std::move(out));
}

std::string check_config(std::string text, std::string dialect) { return ok(to_json(config::check(text, dialect))); }

std::string parse_config(std::string text, std::string dialect) {
  List<Diagnostic> problems;
  const auto parsed = config::parse_text(text, dialect, &problems);
  if (!parsed) return fail(parsed.error(), problems);
  json::Value out;
  out.set("dialect", config::name_of(parsed->config.dialect));
  out.set("config", parsed->config.source);
  out.set("diagnostics", to_json(problems));
  return ok(std::move(out));
}

std::string convert_config(std::string text, std::string to) {
  List<Diagnostic> problems;
  const auto converted = config::convert_text(text, to, &problems);
  if (!converted) return fail(converted.error(), problems);
  json::Value out;
  out.set("config", converted->config);
  out.set("losses", to_json(converted->losses));
  return ok(std::move(out));
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(wasmquant) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("version", &version);
  function("presets", &presets);
  function("checkConfig", &check_config);
  function("parseConfig", &parse_config);
  function("convertConfig", &convert_config);
  function("memory", &memory);
  function("makePlan", &plan_of, allow_raw_pointers());
  function("allocate", &allocate);
  function("release", &release);
  function("liveObjects", &live_objects);
  function("quantizeTensor", &quantize_tensor);
  function("quantizeStages", &quantize_stages);
  function("fakeQuantizeStages", &fake_quantize_stages);
  function("dequantizeStages", &dequantize_stages);
  function("fakeQuantizeTensor", &fake_quantize_tensor);
  function("dequantizeTensor", &dequantize_tensor);
  function("comparison", &comparison);
  function("errorBetween", &error_between);
  function("modelConfig", &model_config);
  function("forwardPlan", &forward_plan);
  function("calibratedAlgorithms", &calibrated_algorithms);
  class_<BoundObserver>("Observer")
      .constructor<std::string>()
      .function("update", &BoundObserver::update)
      .function("passes", &BoundObserver::passes)
      .function("nextPass", &BoundObserver::next_pass)
      .function("finish", &BoundObserver::finish)
      .function("merge", &BoundObserver::merge)
      .function("reset", &BoundObserver::reset);
  class_<BoundModelIndex>("ModelIndex")
      .constructor<>()
      .function("addFile", &BoundModelIndex::add_file)
      .function("need", &BoundModelIndex::need)
      .function("read", &BoundModelIndex::read)
      .function("feed", &BoundModelIndex::feed)
      .function("readShardMap", &BoundModelIndex::read_shard_map)
      .function("finish", &BoundModelIndex::finish)
      .function("layerValues", &BoundModelIndex::layer_values)
      .function("addedOutputs", &BoundModelIndex::added_outputs)
      .function("setInlineBytes", &BoundModelIndex::set_inline_bytes)
      .function("setCompanion", &BoundModelIndex::set_companion);
  class_<BoundPlan>("Plan")
      .function("error", &BoundPlan::error)
      .function("json", &BoundPlan::to_json)
      .function("task", &BoundPlan::task)
      .function("fileLiterals", &BoundPlan::file_literals)
      .function("activationRequests", &BoundPlan::activation_requests)
      .function("constants", &BoundPlan::constants)
      .function("importanceMatrix", &BoundPlan::importance_matrix)
      .function("shardMap", &BoundPlan::shard_map)
      .function("outputConfig", &BoundPlan::output_config);
  class_<BoundActivationCalibration>("ActivationCalibration")
      .constructor<std::string>()
      .function("secondPass", &BoundActivationCalibration::second_pass)
      .function("begin", &BoundActivationCalibration::begin)
      .function("update", &BoundActivationCalibration::update)
      .function("nextPass", &BoundActivationCalibration::next_pass)
      .function("finish", &BoundActivationCalibration::finish);
  class_<BoundTensorSession>("TensorSession")
      .constructor<std::string>()
      .function("info", &BoundTensorSession::info)
      .function("reads", &BoundTensorSession::reads)
      .function("observe", &BoundTensorSession::observe)
      .function("state", &BoundTensorSession::state)
      .function("nextPass", &BoundTensorSession::next_pass)
      .function("takeState", &BoundTensorSession::take_state)
      .function("run", &BoundTensorSession::run);
  class_<BoundTensorDecoder>("TensorDecoder")
      .constructor<std::string>()
      .function("info", &BoundTensorDecoder::info)
      .function("reads", &BoundTensorDecoder::reads)
      .function("decode", &BoundTensorDecoder::decode);
  class_<BoundForwardPass>("ForwardPass")
      .constructor<std::string, std::string>()
      .function("setTokens", &BoundForwardPass::set_tokens)
      .function("begin", &BoundForwardPass::begin)
      .function("reads", &BoundForwardPass::reads)
      .function("load", &BoundForwardPass::load)
      .function("run", &BoundForwardPass::run)
      .function("losses", &BoundForwardPass::losses)
      .function("nextToken", &BoundForwardPass::next_token)
      .function("observe", &BoundForwardPass::observe)
      .function("nextPass", &BoundForwardPass::next_pass)
      .function("observed", &BoundForwardPass::observed)
      .function("calibrate", &BoundForwardPass::calibrate)
      .function("beginBlock", &BoundForwardPass::begin_block)
      .function("prepare", &BoundForwardPass::prepare)
      .function("capture", &BoundForwardPass::capture)
      .function("optimize", &BoundForwardPass::optimize)
      .function("store", &BoundForwardPass::store)
      .function("beginTable", &BoundForwardPass::begin_table)
      .function("storeRows", &BoundForwardPass::store_rows)
      .function("beginSensitivity", &BoundForwardPass::begin_sensitivity)
      .function("finishSensitivity", &BoundForwardPass::finish_sensitivity)
      .function("sensitivity", &BoundForwardPass::sensitivity);
}
