#include "model_functions.h"

#include <cmath>

#include "config/config_api.h"
#include "pipeline/forward/forward_plan.h"

namespace wasmquant::bindings {
namespace {

void add_constants(const json::Value& value, json::Array& path, json::Array& out) {
  if (value.is_number() && !value.is_finite()) {
    json::Value& row = out.emplace_back();
    row.set("path", json::Value(path));
    row.set("value", std::isnan(value.as_number()) ? "NaN" : value.as_number() > 0 ? "Infinity" : "-Infinity");
  }
  for (const auto& [name, member] : value.members()) {
    path.emplace_back(name);
    add_constants(member, path, out);
    path.pop_back();
  }
  for (const json::Value& item : value.items()) {
    path.emplace_back(static_cast<int64_t>(&item - value.items().data()));
    add_constants(item, path, out);
    path.pop_back();
  }
}

}  // namespace

std::string model_config(std::string text) {
  auto config = json::parse(text, json::kPython);
  if (!config)
    return fail(
        error_at(ErrorCode::json_invalid, "config.json", "{}: {}", config.error().where, config.error().message));
  if (!config->is_object())
    return fail(error_at(ErrorCode::json_invalid, "config.json", "expected a JSON object, found {}",
                         json::describe(config->kind())));
  json::Array path, constants;
  add_constants(*config, path, constants);
  json::Value out;
  out.set("config", std::move(*config));
  out.set("constants", std::move(constants));
  return ok(std::move(out));
}

std::string forward_plan(const BoundModelIndex& model, std::string config, std::string options_text) {
  const auto options = json::parse(options_text);
  if (!options) return fail(options.error());
  const ForwardUse use = (*options)["runs"].as_bool() ? ForwardUse::run : ForwardUse::calibrate;
  const auto plan = plan_forward(model.index(), config, tile_bytes_of(*options), use);
  if (!plan) return fail(plan.error());
  return ok(forward_plan_json(*plan, static_cast<size_t>(std::max<int64_t>((*options)["length"].as_integer(), 1))));
}

BoundForwardPass::BoundForwardPass(std::string config, std::string options_text) {
  const auto document = json::parse(config, json::kPython), options = json::parse(options_text);
  if (!document || !options) {
    error_ = document ? options.error() : document.error();
    return;
  }
  auto architecture = model::read_architecture(*document);
  if (!architecture) {
    error_ = std::move(architecture.error());
    return;
  }
  const bool int8 = (*options)["activations"].as_string() == "int8";
  session_ = std::make_unique<ForwardSession>(
      std::move(*architecture), int8 ? model::InputPrecision::int8_per_token : model::InputPrecision::float32);
}

std::string BoundForwardPass::set_tokens(Address tokens, double count, uint32_t length) {
  if (!session_) return fail(error_);
  const Status status =
      session_->pass().set_tokens({pointer<const int32_t>(tokens), static_cast<size_t>(count)}, length);
  if (!status) return fail(status.error());
  json::Value out;
  out.set("portions", static_cast<uint64_t>(session_->pass().portions()));
  return ok(std::move(out));
}

std::string BoundForwardPass::begin(uint32_t step, uint32_t slot, std::string task) {
  return session_ ? reply(session_->begin(step, slot, task)) : fail(error_);
}

std::string BoundForwardPass::reads(uint32_t tile) {
  return session_ ? ok(reads_json(session_->reads(tile))) : fail(error_);
}

std::string BoundForwardPass::load(uint32_t tile) {
  if (!session_) return fail(error_);
  session_->load(tile);
  return ok(nullptr);
}

std::string BoundForwardPass::run(uint32_t portion) { return session_ ? reply(session_->run(portion)) : fail(error_); }

std::string BoundForwardPass::losses() {
  if (!session_) return fail(error_);
  losses_.clear();
  for (size_t i = 0; i < session_->pass().sequences(); ++i) {
    losses_.push_back(session_->pass().loss_of(i));
    if (!std::isfinite(losses_.back()))
      return fail(error_at(ErrorCode::value_not_finite, "logits",
                           "are NaN or infinite in a sequence; the weights hold such values, or overflow float32"));
  }
  json::Value out;
  out.set("pointer", address(losses_.data()));
  out.set("count", static_cast<uint64_t>(losses_.size()));
  return ok(std::move(out));
}

int32_t BoundForwardPass::next_token(uint32_t sequence) {
  return session_ ? session_->pass().next_token(sequence) : -1;
}

std::string calibrated_algorithms(std::string config) {
  List<Diagnostic> problems;
  const auto parsed = config::parse_text(config, "auto", &problems);
  if (!parsed) return fail(parsed.error(), problems);
  json::Array rows;
  for (CalibratedAlgorithm& algorithm : wasmquant::calibrated_algorithms(parsed->config)) {
    json::Value row;
    row.set("name", std::move(algorithm.name));
    row.set("needsInputs", algorithm.needs_inputs);
    row.set("changesInputs", algorithm.changes_inputs);
    row.set("rotatesStream", algorithm.rotates_stream);
    row.set("needsReference", algorithm.needs_reference);
    row.set("isImplied", algorithm.is_implied);
    rows.push_back(std::move(row));
  }
  return ok(std::move(rows));
}

std::string BoundForwardPass::observe(std::string requests) {
  if (!session_) return fail(error_);
  auto calibration = ActivationCalibration::create(requests);
  if (!calibration) return fail(calibration.error());
  inputs_ = std::make_unique<LayerInputs>(std::move(*calibration));
  session_->set_sink(inputs_.get());
  return ok(inputs_->calibration().needs_two_passes());
}

std::string BoundForwardPass::next_pass() { return inputs_ ? reply(inputs_->calibration().next_pass()) : fail(error_); }

std::string BoundForwardPass::observed() {
  if (!inputs_) return fail(error_);
  auto found = inputs_->calibration().finish();
  return found ? ok(std::move(*found)) : fail(found.error());
}

std::string BoundForwardPass::calibrate(std::string config) {
  if (!session_) return fail(error_);
  const auto parsed = config::parse_text(config);
  if (!parsed) return fail(parsed.error());
  const model::Architecture& architecture = session_->pass().architecture();
  auto steps = calibration_steps(parsed->config, architecture);
  if (!steps) return fail(steps.error());
  steps_ = std::move(*steps);
  if (!steps_.empty() && steps_.front().rotation.rotates_down_input()) session_->pass().rotate_down_input();
  calibration_ = std::make_unique<BlockCalibration>(architecture, std::span(steps_.data(), steps_.size()));
  if (calibration_->needs_reference())
    session_->set_reference(&calibration_->reference(), &calibration_->reference_sink());
  if (!steps_.empty() && steps_.front().rotation.rotates_stream())
    tables_ = std::make_unique<EmbeddingRotation>(steps_.front().rotation);
  return ok(nullptr);
}

std::string BoundForwardPass::begin_block(std::string text) {
  if (!calibration_) return fail(error_at(ErrorCode::state_invalid, "calibration", "was not begun"));
  const auto rows = json::parse(text);
  if (!rows) return fail(rows.error());
  List<std::pair<model::Slot, TensorTask>> tasks;
  for (const json::Value& row : rows->items()) {
    const int64_t slot = row["slot"].as_integer();
    auto task = read_task(row["task"].as_string());
    if (!task) return fail(task.error());
    if (slot < 0 || slot >= static_cast<int64_t>(model::kSlots))
      return fail(error_at(ErrorCode::argument_invalid, task->name, "is not a tensor of a block"));
    tasks.push_back({static_cast<model::Slot>(slot), std::move(*task)});
  }
  if (Status begun = calibration_->begin(session_->pass().block(), std::move(tasks)); !begun)
    return fail(begun.error());
  json::Array parts;
  for (size_t part = 0; part < calibration_->parts(); ++part) parts.emplace_back(calibration_->captures(part));
  return ok(std::move(parts));
}

std::string BoundForwardPass::prepare(uint32_t part) {
  if (!calibration_ || part >= calibration_->parts())
    return fail(error_at(ErrorCode::argument_invalid, "calibration", "there is no such part"));
  calibration_->prepare(part);
  return ok(nullptr);
}

std::string BoundForwardPass::capture(uint32_t portion) {
  session_->set_sink(calibration_.get());
  const Status status = session_->run(portion, false);
  session_->set_sink(nullptr);
  return reply(status);
}

std::string BoundForwardPass::optimize(uint32_t part) { return reply(calibration_->optimize(part)); }

std::string BoundForwardPass::store(uint32_t slot) {
  auto change = calibration_->store(static_cast<model::Slot>(slot));
  if (!change) return fail(change.error());
  stored_ = std::move(*change);
  return stored();
}

std::string BoundForwardPass::begin_table(uint32_t slot, std::string text) {
  if (!tables_) return fail(error_at(ErrorCode::state_invalid, "calibration", "the config has no rotation"));
  auto task = read_task(text);
  return task ? reply(tables_->begin(slot, std::move(*task))) : fail(task.error());
}

std::string BoundForwardPass::store_rows() {
  auto change = tables_->store(session_->rows(), session_->first_row());
  if (!change) return fail(change.error());
  stored_ = std::move(*change);
  session_->replace_rows(stored_.values);
  return stored();
}

std::string BoundForwardPass::stored() {
  List<TileWrite> writes;
  for (const StoredPiece& piece : stored_.pieces)
    writes.push_back({piece.at.file, piece.at.offset, piece.bytes.data(), piece.bytes.size()});
  const bool has_error = stored_.error.count != 0;
  return ok(writes_json(writes, {&stored_.error, has_error ? 1u : 0u}, losses_));
}

std::string BoundForwardPass::begin_sensitivity() {
  if (!session_) return fail(error_);
  sensitivity_ = std::make_unique<BlockSensitivity>(session_->pass().block());
  session_->set_sink(sensitivity_.get());
  return ok(nullptr);
}

std::string BoundForwardPass::finish_sensitivity() {
  session_->set_sink(nullptr);
  return reply(sensitivity_->finish(session_->pass().stream_energy()));
}

std::string BoundForwardPass::sensitivity(uint32_t slot, std::string text) {
  const auto task = read_task(text);
  if (!task) return fail(task.error());
  const auto measured = sensitivity_->measure(static_cast<model::Slot>(slot), *task);
  return measured ? ok(*measured) : fail(measured.error());
}

}  // namespace wasmquant::bindings
