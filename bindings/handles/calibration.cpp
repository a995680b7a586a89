// Calibration for JavaScript: what stages share, the parts of a block in a team, and turned tables.
#include "handles/calibration.h"

#include <algorithm>

#include "config/config_text.h"
#include "core/message.h"

namespace wasmquant::bindings {
namespace {

template <class T>
List<Region> regions_of(const List<std::span<T>>& spans) {
  List<Region> out;
  for (const std::span<T> span : spans) out.push_back(region_of(span));
  return out;
}

Result<List<std::pair<model::Slot, TensorTask>>> tasks_of(const BoundWork& work, const std::string& text,
                                                          ForwardSession& session) {
  const model::Architecture& a = session.pass().architecture();
  TRY(rows, json::parse(text));
  List<std::pair<model::Slot, TensorTask>> tasks;
  for (const json::Value& row : rows.items()) {
    const int64_t number = row["slot"].as_integer();
    const int64_t slot = number < 0 ? number : static_cast<int64_t>(block_slot(static_cast<uint32_t>(number)));
    List<TensorTask> files;
    for (const json::Value& item : row["items"].items()) {
      TRY(task, work.task(static_cast<uint32_t>(item.as_integer())));
      files.push_back(std::move(task));
    }
    if (files.empty() || slot < 0 || slot >= static_cast<int64_t>(model::kSlots))
      return error_at(ErrorCode::argument_invalid, "calibration", "slot {} is not a tensor of a block", number);
    if (number < kExpertSlots) {
      TRY(task, session.stored_task(static_cast<uint32_t>(number), std::move(files)));
      tasks.push_back({static_cast<model::Slot>(slot), std::move(task)});
      continue;
    }
    const auto expert = static_cast<uint32_t>(number - kExpertSlots);
    TensorTask task = std::move(files.front());
    // Rows are inputs where the file has [in, out].
    const bool is_turned = a.routing.is_input_major && task.layout->codes != CodeStorage::ggml_rows &&
                           task.layout->components.front().shape.size() == 3;
    const uint64_t height = (expert % 3 == 2) == is_turned ? a.routing.width : a.hidden;
    TRY(own, expert_task(std::move(task), expert / 3, is_turned ? 2 : expert % 3, a.routing.experts, height));
    if (is_turned && a.routing.gate_limit == 0 && expert % 3 < 2) own = half_task(std::move(own), expert % 3);
    if (files.size() > 1) {
      TRY(of_up, expert_task(std::move(files[1]), expert / 3, 1, a.routing.experts, a.routing.width));
      TRY(both, FileTensors::alternating(std::move(own), std::move(of_up)));
      own = std::move(both);
    }
    TRY_VOID(session.restore_changes(static_cast<uint32_t>(number), own));
    tasks.push_back({static_cast<model::Slot>(slot), std::move(own)});
  }
  return tasks;
}

TileResult tile_of(const StoredValues& stored) {
  TileResult out;
  for (const StoredPiece& piece : stored.pieces)
    out.writes.push_back({piece.at.file, piece.at.offset, piece.bytes.data(), piece.bytes.size()});
  out.sums = {&stored.error, stored.error.count == 0 ? 0u : 1u};
  return out;
}

}  // namespace

CalibrationState::CalibrationState(std::shared_ptr<ForwardSession> pass, List<CalibrationStep> asked)
    : session(std::move(pass)), steps(std::move(asked)), blocks(std::span(steps.data(), steps.size())) {
  if (blocks.needs_reference()) session->set_reference(&blocks.reference(), &blocks.reference_sink());
  if (steps.empty()) return;
  ModelRotation& rotation = steps.front().rotation;
  if (rotation.rotates_down_input()) session->pass().rotate_down_input();
  if (rotation.rotates_stream()) tables.emplace(rotation);
}

Made<BoundCalibration> BoundCalibration::make(const BoundForwardPass& pass, const std::string& config, uint32_t member,
                                              uint32_t members) {
  TRY(parsed, config::parse_text(config));
  TRY(steps, calibration_steps(parsed.config, pass.session()->pass().architecture()));
  auto state = std::make_shared<CalibrationState>(pass.session(), std::move(steps));
  state->blocks.share_work({member, members});
  return std::unique_ptr<BoundCalibration>(new BoundCalibration(std::move(state)));
}

Made<BoundBlockCalibrator> BoundBlockCalibrator::make(const BoundCalibration& calibration, const BoundWork& work,
                                                      const std::string& text) {
  std::unique_ptr<BoundBlockCalibrator> made(new BoundBlockCalibrator(calibration.state()));
  ForwardSession& session = *made->state_->session;
  TRY(tasks, tasks_of(work, text, session));
  TRY_VOID(made->blocks().begin(session.part(), session.values(), std::move(tasks)));
  return made;
}

json::Value BoundBlockCalibrator::parts() const {
  json::Array captures;
  for (size_t part = 0; part < blocks().parts(); ++part) {
    json::Array portions;
    const Capture capture = blocks().captures(part);
    const model::ForwardPass& pass = state_->session->pass();
    if (capture != Capture::nothing)
      for (const uint32_t portion :
           pass.sampled_portions(capture == Capture::sample ? blocks().sampled_tokens() : ~uint64_t{0}))
        portions.emplace_back(static_cast<int64_t>(portion));
    captures.emplace_back(std::move(portions));
  }
  return captures;
}

Result<List<Region>> BoundBlockCalibrator::record(uint32_t part, uint32_t portion) {
  TRY_VOID(enter(part));
  ForwardSession& session = *state_->session;
  state_->recorded.clear();
  session.set_sink(&state_->recorded);
  const Status status = session.run(portion, false);
  session.set_sink(nullptr);
  if (!status) return status.error();
  return regions_of(state_->recorded.matrices());
}

Result<List<Region>> BoundBlockCalibrator::expect(uint32_t part, const std::string& text) {
  TRY_VOID(enter(part));
  TRY(bytes, json::parse(text));
  state_->received.expect(bytes.items());
  return regions_of(state_->received.matrices());
}

List<Region> BoundBlockCalibrator::sums(uint32_t member) { return regions_of(blocks().shared_sums(member)); }
List<Region> BoundBlockCalibrator::results(uint32_t member) { return regions_of(blocks().results(member)); }

Result<bool> BoundBlockCalibrator::optimize(uint32_t part) {
  TRY_VOID(enter(part));
  auto done = blocks().optimize(part);
  forget_changed();
  if (done && *done) ++done_;
  return done;
}

Result<TileResult> BoundBlockCalibrator::store(uint32_t slot) {
  if (done_ != blocks().parts()) return error_at(ErrorCode::state_invalid, "calibration", "has parts left");
  const auto place = place_of(slot);
  if (!place) return error_at(ErrorCode::argument_invalid, "calibration", "slot {} has no tensor", slot);
  auto change = blocks().store(*place);
  forget_changed();
  if (!change) return change.error();
  stored_ = std::move(*change);
  return tile_of(stored_);
}

json::Value BoundBlockCalibrator::evidence(uint32_t slot) const {
  json::Value out;
  const auto place = place_of(slot);
  if (!place || !blocks().evidence(*place)) return out;
  const auto& found = blocks().evidence(*place);
  out.set("tokens", found->tokens);
  out.set("columns", found->columns);
  out.set("rank", found->rank);
  out.set("signal", found->signal);
  out.set("error", found->error);
  out.set("nearestError", found->nearest_error);
  out.set("aimsAtFloat", found->aims_at_float);
  out.set("isNearest", found->is_nearest);
  return out;
}

std::optional<model::Slot> BoundBlockCalibrator::place_of(uint32_t slot) const noexcept {
  const bool exists = state_->session->is_expert() ? slot >= kExpertSlots : slot < model::kSlots;
  return exists ? std::optional(block_slot(slot)) : std::nullopt;
}

void BoundBlockCalibrator::forget_changed() const noexcept {
  if (blocks().take_changes()) state_->session->pass().forget_states();
}

Status BoundBlockCalibrator::enter(uint32_t part) {
  if (part != done_ || part >= blocks().parts())
    return error_at(ErrorCode::argument_invalid, "calibration", "part {} is not the next", part);
  if (prepared_ == part) blocks().prepare(prepared_++);
  return {};
}

Made<BoundEmbeddingRotation> BoundEmbeddingRotation::make(const BoundCalibration& calibration, uint32_t slot,
                                                          const BoundWork& work, uint32_t number) {
  std::unique_ptr<BoundEmbeddingRotation> made(new BoundEmbeddingRotation(calibration.state()));
  auto& tables = made->state_->tables;
  if (!tables) return error_at(ErrorCode::state_invalid, "calibration", "the config has no rotation");
  TRY(task, work.task(number));
  TRY_VOID(made->state_->session->restore_changes(slot, task));
  TRY_VOID(tables->begin(slot, std::move(task)));
  return made;
}

Result<TileResult> BoundEmbeddingRotation::store() {
  ForwardSession& session = *state_->session;
  TRY(change, state_->tables->store(session.rows(), session.first_row()));
  stored_ = std::move(change);
  session.replace_rows(stored_.values);
  return tile_of(stored_);
}

}  // namespace wasmquant::bindings
