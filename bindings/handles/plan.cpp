// A plan for JavaScript: rows and tasks in pieces, known bytes of files, and the options that a plan is made with.
#include "handles/plan.h"

#include <algorithm>

#include "core/message.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan_output/output_config.h"
#include "pipeline/stored/dequantized_view.h"
#include "pipeline/task/packed_tasks.h"
#include "version.h"

namespace wasmquant::bindings {
namespace {

PlanOptions options_of(const json::Value& given, PlanBytes bytes) {
  PlanOptions options;
  options.version = kVersion;
  if (const json::Value& format = given["format"]; format.is_string()) options.format = format.as_string();
  if (const json::Value& name = given["name"]; name.is_string()) options.name = name.as_string();
  options.include_towers = given["include_towers"].as_bool();
  const std::string& experts = given["experts"].as_string();
  options.experts = experts == "include"   ? ExpertChoice::include
                    : experts == "exclude" ? ExpertChoice::exclude
                                           : ExpertChoice::by_default;
  options.tile_bytes = tile_bytes_of(given);
  options.calibrates = given["calibrates"].as_bool();
  options.activations = given["activations"];
  const json::Value &onnx = given["onnx"], &gguf = given["gguf"];
  options.onnx.qdq = onnx["qdq"].as_bool();
  options.onnx.accuracy_level = static_cast<uint32_t>(onnx["accuracyLevel"].as_integer());
  options.onnx.external_data = onnx["externalData"].as_bool();
  options.onnx.constant_inputs = onnx["constantInputs"].as_bool();
  options.onnx.present = given["present"];
  options.onnx.file = given["file"].as_string();
  options.onnx.folder = given["folder"].as_bool();
  options.gguf.imatrix_name = gguf["imatrixName"].as_string();
  options.gguf.shard_bytes = static_cast<uint64_t>(gguf["shardBytes"].as_integer());
  options.gguf.parts = static_cast<uint32_t>(given["parts"].as_integer());
  options.gguf.mmproj = gguf["mmproj"].as_bool();
  options.constants = bytes.constants;
  options.gguf.imatrix = bytes.imatrix;
  return options;
}

Error no_file() { return error_at(ErrorCode::argument_invalid, "file", "no such output file"); }

}  // namespace

Made<BoundPlan> BoundPlan::make(const BoundModelIndex& index, BoundConfig& config, const std::string& options,
                                PlanBytes bytes, List<Diagnostic>& diagnostics) {
  List<Diagnostic> remarks;
  TRY(original, original_model(index.index(), &remarks));
  const ModelIndex& model = original ? *original : index.index();
  TRY(given, json::parse(options));
  TRY(plan, make_plan(model, config.given(), options_of(given, bytes), diagnostics));
  for (Diagnostic& remark : remarks) diagnostics.push_back(std::move(remark));
  return std::unique_ptr<BoundPlan>(new BoundPlan(std::move(original), model, std::move(plan), std::move(diagnostics)));
}

Region BoundPlan::pack(uint32_t first, uint32_t last) {
  TaskPacker packer;
  for (size_t i = first; i < std::min<size_t>(last, plan_.task_count()); ++i)
    packer.add(plan_.task_of(plan_.work_of(i)));
  packed_ = packer.bytes();
  return region_of(packed_);
}

Result<json::Value> BoundPlan::file_literals(uint32_t file) const {
  if (file >= plan_.files.size()) return no_file();
  const PlannedFile& planned = plan_.files[file];
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
  return out;
}

Result<Region> BoundPlan::literal_bytes(uint32_t file, uint32_t piece) {
  if (file >= plan_.files.size()) return no_file();
  const PlannedFile& planned = plan_.files[file];
  const bool is_header = piece < planned.header.piece_count();
  if (is_header) header_text_ = header_text(plan_, planned.header, piece);
  return region_of(is_header ? header_text_ : planned.prefix);
}

json::Value BoundPlan::constants() const {
  json::Array ranges;
  for (const SourceRange& range : plan_.constants) {
    json::Value& row = ranges.emplace_back();
    row.set("file", static_cast<int64_t>(range.at.file));
    row.set("begin", range.at.offset);
    row.set("bytes", range.bytes);
  }
  return ranges;
}

Result<Region> BoundPlan::importance_matrix(const std::string& text) {
  TRY(options, json::parse(text));
  ImatrixOptions given;
  given.version = kVersion;
  if (options["dat"].as_bool()) given.format = imatrix::FileFormat::dat;
  given.dataset = options["dataset"].as_string();
  given.chunk_size = static_cast<uint64_t>(options["chunkSize"].as_integer());
  TRY(written, write_imatrix(plan_, options["found"], given));
  imatrix_ = std::move(written);
  return region_of(imatrix_);
}

Result<json::Value> BoundPlan::output_config() const {
  TRY(text, wasmquant::output_config(plan_, model_.folder_config_text(), model_.folder_config()));
  return json::Value(std::move(text));
}

}  // namespace wasmquant::bindings
