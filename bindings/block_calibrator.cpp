// Calibration of a model block by block, and rotation of embedding and head. Contracts: BoundCalibration,
// BoundBlockCalibrator and BoundEmbeddingRotation of web/lib/engine/forward_module.ts.
#include <emscripten/bind.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "config/config_text.h"
#include "core/list.h"
#include "forward_pass.h"
#include "marshal.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/calibration/captured_inputs.h"
#include "pipeline/calibration/embedding_rotation.h"
#include "tile_json.h"

namespace wasmquant::bindings {
namespace {

/// State shared by the stages, each of which keeps it alive.
struct Calibration {
  Calibration(std::shared_ptr<ForwardSession> pass, List<CalibrationStep> asked)
      : session(std::move(pass)),
        steps(std::move(asked)),
        blocks(session->pass().architecture(), std::span(steps.data(), steps.size())) {
    if (blocks.needs_reference()) session->set_reference(&blocks.reference(), &blocks.reference_sink());
    if (steps.empty()) return;
    ModelRotation& rotation = steps.front().rotation;
    if (rotation.rotates_down_input()) session->pass().rotate_down_input();
    if (rotation.rotates_stream()) tables.emplace(rotation);
  }
  Calibration(const Calibration&) = delete;
  Calibration& operator=(const Calibration&) = delete;
  ~Calibration() { session->set_reference(nullptr, nullptr); }

  std::shared_ptr<ForwardSession> session;
  List<CalibrationStep> steps;
  BlockCalibration blocks;
  std::optional<EmbeddingRotation> tables;
  CapturedInputs recorded{blocks, session->pass().architecture()}, received{blocks, session->pass().architecture()};
};

template <class T>
std::string regions_json(const List<std::span<T>>& regions) {
  json::Array out;
  for (const std::span<T> region : regions) {
    json::Value row;
    row.set("pointer", address(region.data()));
    row.set("bytes", static_cast<uint64_t>(region.size_bytes()));
    out.push_back(std::move(row));
  }
  return ok(std::move(out));
}

Result<std::shared_ptr<Calibration>> calibration_of(const BoundForwardPass& pass, const std::string& config) {
  if (!pass.session()) return pass.session().error();
  TRY(parsed, config::parse_text(config));
  TRY(steps, calibration_steps(parsed.config, (*pass.session())->pass().architecture()));
  return std::make_shared<Calibration>(*pass.session(), std::move(steps));
}

Result<List<std::pair<model::Slot, TensorTask>>> tasks_of(const BoundWork& work, const std::string& text) {
  TRY(rows, json::parse(text));
  List<std::pair<model::Slot, TensorTask>> tasks;
  for (const json::Value& row : rows.items()) {
    const int64_t slot = row["slot"].as_integer();
    TRY(task, work.task(static_cast<uint32_t>(row["task"].as_integer())));
    if (slot < 0 || slot >= static_cast<int64_t>(model::kSlots))
      return error_at(ErrorCode::argument_invalid, task.name, "is not a tensor of a block");
    tasks.push_back({static_cast<model::Slot>(slot), std::move(task)});
  }
  return tasks;
}

std::string stored_json(const StoredValues& stored) {
  static List<double> sums;
  List<TileWrite> writes;
  for (const StoredPiece& piece : stored.pieces)
    writes.push_back({piece.at.file, piece.at.offset, piece.bytes.data(), piece.bytes.size()});
  return ok(writes_json(writes, {&stored.error, stored.error.count == 0 ? 0u : 1u}, sums));
}

class BoundCalibration : Counted {
 public:
  BoundCalibration(const BoundForwardPass& pass, std::string config, uint32_t member, uint32_t members)
      : calibration_(calibration_of(pass, config)) {
    if (calibration_) (*calibration_)->blocks.share_work({member, members});
  }
  std::string error() const { return calibration_ ? ok(nullptr) : fail(calibration_.error()); }
  const Result<std::shared_ptr<Calibration>>& get() const noexcept { return calibration_; }

 private:
  Result<std::shared_ptr<Calibration>> calibration_;
};

class BoundBlockCalibrator : Counted {
 public:
  BoundBlockCalibrator(const BoundCalibration& calibration, const BoundWork& work, std::string tasks)
      : status_(begin(calibration, work, tasks)) {}

  std::string parts() const {
    if (!status_) return fail(status_.error());
    json::Array captures;
    for (size_t part = 0; part < blocks().parts(); ++part) {
      json::Array portions;
      const Capture capture = blocks().captures(part);
      const model::ForwardPass& pass = calibration_->session->pass();
      if (capture != Capture::nothing)
        for (const uint32_t portion : pass.sampled_portions(capture == Capture::sample ? kSampledTokens : ~uint64_t{0}))
          portions.emplace_back(static_cast<int64_t>(portion));
      captures.emplace_back(std::move(portions));
    }
    return ok(std::move(captures));
  }

  std::string record(uint32_t part, uint32_t portion) {
    if (Status entered = enter(part); !entered) return reply(entered);
    ForwardSession& session = *calibration_->session;
    session.set_sink(&calibration_->recorded);
    const Status status = session.run(portion, false);
    session.set_sink(nullptr);
    return status ? regions_json(calibration_->recorded.matrices()) : fail(status.error());
  }

  std::string expect(uint32_t part, uint32_t portion) {
    if (Status entered = enter(part); !entered) return reply(entered);
    if (portion >= calibration_->session->pass().portions())
      return fail(error_at(ErrorCode::argument_invalid, "portion", "does not exist"));
    const auto [begin, end] = calibration_->session->pass().tokens_of(portion);
    calibration_->received.expect(static_cast<uint32_t>(end - begin));
    return regions_json(calibration_->received.matrices());
  }

  std::string show(bool is_own) {
    if (!status_) return fail(status_.error());
    return reply((is_own ? calibration_->recorded : calibration_->received).show());
  }

  std::string sums(uint32_t member) {
    if (!status_) return fail(status_.error());
    return regions_json(blocks().shared_sums(member));
  }

  std::string optimize(uint32_t part) {
    if (Status entered = enter(part); !entered) return reply(entered);
    const auto done = blocks().optimize(part);
    forget_changed();
    if (!done) return fail(done.error());
    if (*done) ++done_;
    return ok(*done);
  }

  std::string results(uint32_t member) {
    if (!status_) return fail(status_.error());
    return regions_json(blocks().results(member));
  }

  std::string store(uint32_t slot) {
    if (!status_) return fail(status_.error());
    if (done_ != blocks().parts()) return fail(error_at(ErrorCode::state_invalid, "calibration", "has parts left"));
    auto change = blocks().store(static_cast<model::Slot>(slot));
    forget_changed();
    if (!change) return fail(change.error());
    stored_ = std::move(*change);
    return stored_json(stored_);
  }

  std::string evidence(uint32_t slot) const {
    if (!status_) return fail(status_.error());
    const auto& found = blocks().evidence(static_cast<model::Slot>(std::min<size_t>(slot, model::kSlots - 1)));
    if (!found) return ok(nullptr);
    json::Value out;
    out.set("tokens", found->tokens);
    out.set("columns", found->columns);
    out.set("rank", found->rank);
    out.set("signal", found->signal);
    out.set("error", found->error);
    out.set("nearestError", found->nearest_error);
    out.set("aimsAtFloat", found->aims_at_float);
    out.set("isNearest", found->is_nearest);
    return ok(std::move(out));
  }

 private:
  Status begin(const BoundCalibration& calibration, const BoundWork& work, const std::string& text) {
    if (!calibration.get()) return calibration.get().error();
    calibration_ = *calibration.get();
    TRY(tasks, tasks_of(work, text));
    return blocks().begin(calibration_->session->pass().block(), std::move(tasks));
  }
  BlockCalibration& blocks() const noexcept { return calibration_->blocks; }

  void forget_changed() const noexcept {
    if (blocks().take_changes()) calibration_->session->pass().forget_states();
  }

  Status enter(uint32_t part) {
    if (!status_) return status_.error();
    if (part != done_ || part >= blocks().parts())
      return error_at(ErrorCode::argument_invalid, "calibration", "part {} is not the next", part);
    if (prepared_ == part) blocks().prepare(prepared_++);
    return {};
  }

  std::shared_ptr<Calibration> calibration_;
  Status status_;
  uint32_t prepared_ = 0, done_ = 0;  // parts
  StoredValues stored_;
};

class BoundEmbeddingRotation : Counted {
 public:
  BoundEmbeddingRotation(const BoundCalibration& calibration, uint32_t slot, const BoundWork& work, uint32_t task)
      : status_(begin(calibration, slot, work, task)) {}
  std::string error() const { return reply(status_); }

  std::string store() {
    if (!status_) return fail(status_.error());
    ForwardSession& session = *calibration_->session;
    auto change = calibration_->tables->store(session.rows(), session.first_row());
    if (!change) return fail(change.error());
    stored_ = std::move(*change);
    session.replace_rows(stored_.values);
    return stored_json(stored_);
  }

 private:
  Status begin(const BoundCalibration& calibration, uint32_t slot, const BoundWork& work, uint32_t number) {
    if (!calibration.get()) return calibration.get().error();
    calibration_ = *calibration.get();
    if (!calibration_->tables) return error_at(ErrorCode::state_invalid, "calibration", "the config has no rotation");
    TRY(task, work.task(number));
    return calibration_->tables->begin(slot, std::move(task));
  }

  std::shared_ptr<Calibration> calibration_;
  Status status_;
  StoredValues stored_;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(block_calibrator) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundCalibration>("Calibration")
      .constructor<const BoundForwardPass&, std::string, uint32_t, uint32_t>()
      .function("error", &BoundCalibration::error);
  class_<BoundBlockCalibrator>("BlockCalibrator")
      .constructor<const BoundCalibration&, const BoundWork&, std::string>()
      .function("parts", &BoundBlockCalibrator::parts)
      .function("record", &BoundBlockCalibrator::record)
      .function("expect", &BoundBlockCalibrator::expect)
      .function("show", &BoundBlockCalibrator::show)
      .function("sums", &BoundBlockCalibrator::sums)
      .function("optimize", &BoundBlockCalibrator::optimize)
      .function("results", &BoundBlockCalibrator::results)
      .function("store", &BoundBlockCalibrator::store)
      .function("evidence", &BoundBlockCalibrator::evidence);
  class_<BoundEmbeddingRotation>("EmbeddingRotation")
      .constructor<const BoundCalibration&, uint32_t, const BoundWork&, uint32_t>()
      .function("error", &BoundEmbeddingRotation::error)
      .function("store", &BoundEmbeddingRotation::store);
}
