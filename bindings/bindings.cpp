// Version, presets, configs and memory. All bindings here: types and contracts are in web/lib/engine/module.ts.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <cstdlib>

#include "border/reply.h"
#include "config/config_text.h"
#include "config/dialects/dialects.h"
#include "config/dialects/write.h"
#include "config/presets.h"
#include "pipeline/calibration/calibration_steps.h"
#include "version.h"

namespace wasmquant::bindings {
namespace {

Address allocate(uint32_t bytes) { return reinterpret_cast<Address>(std::malloc(bytes)); }
void release(Address at) { std::free(pointer<void>(at)); }
emscripten::val memory() { return emscripten::val::module_property("wasmMemory"); }
int live_objects() { return Counted::live; }

std::string version() {
  json::Value out;
  out.set("library", kVersion);
  out.set("compiler", kCompiler);
  return reply(out);
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
  return reply(out);
}

std::string check_config(std::string text, std::string dialect) { return reply(to_json(config::check(text, dialect))); }

std::string parse_config(std::string text, std::string dialect) {
  List<Diagnostic> problems;
  const auto parsed = config::parse_text(text, dialect, &problems);
  if (!parsed) return fail(parsed.error(), problems);
  json::Value out;
  out.set("dialect", config::name_of(parsed->config.dialect));
  out.set("config", parsed->config.source);
  bool needs_tokens = false;
  for (const CalibratedAlgorithm& algorithm : wasmquant::calibrated_algorithms(parsed->config))
    needs_tokens |= algorithm.needs_inputs;
  out.set("needsTokens", needs_tokens);
  out.set("diagnostics", to_json(problems));
  return reply(out);
}

std::string convert_config(std::string text, std::string to) {
  List<Diagnostic> problems;
  const auto converted = config::convert_text(text, to, &problems);
  if (!converted) return fail(converted.error(), problems);
  json::Value out;
  out.set("config", converted->config);
  out.set("losses", to_json(converted->losses));
  return reply(out);
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(library) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("version", &version);
  function("presets", &presets);
  function("checkConfig", &check_config);
  function("parseConfig", &parse_config);
  function("convertConfig", &convert_config);
  function("memory", &memory);
  function("allocate", &allocate);
  function("release", &release);
  function("liveObjects", &live_objects);
  function("takeError", &take_error);
}
