// The plan of a run. Contract: BoundPlan of web/lib/engine/module.ts.
#include "pipeline/plan/plan.h"

#include <emscripten/bind.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "model_index.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan_output/output_config.h"
#include "pipeline/plan_output/plan_json.h"
#include "pipeline/stored/dequantized_view.h"
#include "pipeline/task/packed_tasks.h"
#include "tile_json.h"
#include "version.h"

namespace wasmquant::bindings {
namespace {

Result<Plan> plan_with(const ModelIndex& model, const std::string& config, const std::string& options_text,
                       List<Diagnostic>& diagnostics) {
  TRY(options_json, json::parse(options_text));
  PlanOptions options;
  options.version = kVersion;
  if (const json::Value& format = options_json["format"]; format.is_string()) options.format = format.as_string();
  if (const json::Value& name = options_json["name"]; name.is_string()) options.name = name.as_string();
  options.include_towers = options_json["include_towers"].as_bool();
  const std::string& experts = options_json["experts"].as_string();
  options.experts = experts == "include"   ? ExpertChoice::include
                    : experts == "exclude" ? ExpertChoice::exclude
                                           : ExpertChoice::by_default;
  options.tile_bytes = tile_bytes_of(options_json);
  options.calibrates = options_json["calibrates"].as_bool();
  options.activations = options_json["activations"];
  options.constants = {pointer<const uint8_t>(static_cast<Address>(options_json["constants"].as_integer())),
                       static_cast<size_t>(options_json["constantsBytes"].as_integer())};
  const json::Value& onnx = options_json["onnx"];
  options.onnx.qdq = onnx["qdq"].as_bool();
  options.onnx.accuracy_level = static_cast<uint32_t>(onnx["accuracyLevel"].as_integer());
  options.onnx.external_data = onnx["externalData"].as_bool();
  options.onnx.constant_inputs = onnx["constantInputs"].as_bool();
  options.onnx.file = options_json["file"].as_string();
  options.onnx.folder = options_json["folder"].as_bool();
  const json::Value& gguf = options_json["gguf"];
  options.gguf.imatrix = {pointer<const uint8_t>(static_cast<Address>(gguf["imatrix"].as_integer())),
                          static_cast<size_t>(gguf["imatrixBytes"].as_integer())};
  options.gguf.imatrix_name = gguf["imatrixName"].as_string();
  options.gguf.shard_bytes = static_cast<uint64_t>(gguf["shardBytes"].as_integer());
  return make_plan(model, config, options, diagnostics);
}

class BoundPlan : Counted {
 public:
  BoundPlan(const BoundModelIndex& model, const std::string& config, const std::string& options)
      : original_(original_model(model.index())),
        model_(original_ && *original_ ? original_->get() : &model.index()),
        plan_(original_ ? plan_with(*model_, config, options, diagnostics_) : Result<Plan>(original_.error())) {}

  std::string error() const { return plan_ ? ok(nullptr) : fail(plan_.error(), diagnostics_); }

  std::string to_json() const { return plan_ ? ok(plan_json(*plan_, *model_, diagnostics_)) : error(); }

  std::string tensors(uint32_t first, uint32_t last) {
    if (!plan_) return error();
    if (!rows_) rows_.emplace(*plan_, *model_);
    return ok_text(rows_->rows(first, last));
  }

  std::string work(uint32_t first, uint32_t last) const {
    return plan_ ? ok_text(work_json(*plan_, first, last)) : error();
  }

  std::string pack(uint32_t first, uint32_t last) {
    if (!plan_) return error();
    TaskPacker packer;
    for (size_t i = first; i < std::min<size_t>(last, plan_->task_count()); ++i)
      packer.add(plan_->task_of(plan_->work_of(i)));
    packed_ = packer.bytes();
    return ok(bytes_json(packed_));
  }

  std::string file_literals(uint32_t file) const {
    if (!plan_ || file >= plan_->files.size()) return no_file();
    const PlannedFile& planned = plan_->files[file];
    const uint64_t header = planned.header.bytes;
    json::Array places;
    const auto add = [&](uint64_t offset, uint64_t begin, uint64_t bytes) {
      json::Array& place = places.emplace_back(json::Array{}).items();
      place.emplace_back(offset);
      place.emplace_back(begin);
      place.emplace_back(bytes);
    };
    if (header > 0) add(0, 0, header);
    for (const Literal& literal : planned.literals) add(literal.offset, header + literal.begin, literal.bytes);
    if (places.empty()) add(0, 0, planned.prefix.size());
    json::Value out;
    out.set("bytes", header + planned.prefix.size());
    out.set("places", std::move(places));
    return ok(std::move(out));
  }

  std::string literal_bytes(uint32_t file, uint32_t piece) {
    if (!plan_ || file >= plan_->files.size()) return no_file();
    const PlannedFile& planned = plan_->files[file];
    const bool is_header = piece < planned.header.piece_count();
    if (is_header) header_text_ = header_text(*plan_, planned.header, piece);
    return ok(bytes_json(is_header ? header_text_ : planned.prefix));
  }

  std::string activation_requests() const { return plan_ ? write_requests(plan_->requests) : std::string(); }

  std::string constants() const {
    json::Array ranges;
    if (plan_)
      for (const SourceRange& range : plan_->constants) {
        json::Value& row = ranges.emplace_back();
        row.set("file", static_cast<int64_t>(range.at.file));
        row.set("begin", range.at.offset);
        row.set("bytes", range.bytes);
      }
    return ok(std::move(ranges));
  }

  std::string importance_matrix(std::string text) {
    const auto options = json::parse(text);
    if (!plan_ || !options) return plan_ ? fail(options.error()) : error();
    ImatrixOptions given;
    given.version = kVersion;
    if ((*options)["dat"].as_bool()) given.format = imatrix::FileFormat::dat;
    given.dataset = (*options)["dataset"].as_string();
    given.chunk_size = static_cast<uint64_t>((*options)["chunkSize"].as_integer());
    auto written = write_imatrix(*plan_, (*options)["found"], given);
    if (!written) return fail(written.error());
    imatrix_ = std::move(*written);
    return ok(bytes_json(imatrix_));
  }

  std::string shard_map() const { return plan_ ? plan_->shard_map : std::string(); }

  std::string output_config(std::string original) const {
    if (!plan_) return error();
    auto text = wasmquant::output_config(*plan_, original);
    return text ? ok(std::move(*text)) : fail(text.error());
  }

 private:
  static std::string no_file() { return fail(error_at(ErrorCode::argument_invalid, "file", "no such output file")); }

  Result<std::unique_ptr<ModelIndex>> original_;  // of a quantized checkpoint
  const ModelIndex* model_;
  List<Diagnostic> diagnostics_;
  Result<Plan> plan_;
  std::optional<PlanRows> rows_;
  std::string imatrix_, packed_, header_text_;
};

BoundPlan* plan_of(const BoundModelIndex& model, std::string config, std::string options) {
  return new BoundPlan(model, config, options);  // JavaScript owns it: delete()
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(plan) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundPlan>("Plan")
      .function("error", &BoundPlan::error)
      .function("json", &BoundPlan::to_json)
      .function("tensors", &BoundPlan::tensors)
      .function("work", &BoundPlan::work)
      .function("pack", &BoundPlan::pack)
      .function("fileLiterals", &BoundPlan::file_literals)
      .function("literalBytes", &BoundPlan::literal_bytes)
      .function("activationRequests", &BoundPlan::activation_requests)
      .function("constants", &BoundPlan::constants)
      .function("importanceMatrix", &BoundPlan::importance_matrix)
      .function("shardMap", &BoundPlan::shard_map)
      .function("outputConfig", &BoundPlan::output_config);
  function("makePlan", &plan_of, allow_raw_pointers());
}
