// A model folder calibrated block by block as a host does it, and its loss with what was stored.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config_text.h"
#include "model/model_folder.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/calibration/model_rotation.h"
#include "pipeline/plan/plan.h"

namespace wasmquant::testing {

/// Called after each tile.
using Loaded = std::function<void(const ForwardTensor&)>;

inline void load_step(const ModelFolder& model, ForwardSession& session, const ForwardStep& step, uint32_t number,
                      const Loaded& loaded = {}) {
  for (const ForwardTensor& tensor : step.tensors) {
    REQUIRE(bool(session.begin(number, tensor.slot, in_worker(tensor.task))));
    for (uint64_t tile = 0; tile < tensor.task.tiles; ++tile) {
      model.fill(session.reads(tile));
      REQUIRE(bool(session.load(tile)));
      if (loaded) loaded(tensor);
      for (uint32_t portion = 0; tensor.is_streamed && portion < session.pass().portions(); ++portion)
        REQUIRE(bool(session.run(portion)));
    }
  }
}

inline void run_all(ForwardSession& session) {
  for (uint32_t portion = 0; portion < session.pass().portions(); ++portion) REQUIRE(bool(session.run(portion)));
}

struct CalibratedModel {
  std::vector<model::BlockValues> blocks;            // as they will be read back
  std::map<std::string, std::vector<float>> tables;  // what else a rotation turns, by name
  bool rotated_down_input = false;                   // R4
  Error error;                                       // the first one; blocks end there
  double weight_noise = 0;                           // sum of squared differences over all weights
};

/// `float_only`: nothing is stored, so that only what the algorithms do to the weights is seen. `keeps_states`:
/// ForwardPass::keep_states.
inline CalibratedModel calibrate(const ModelFolder& model, const std::string& config, std::span<const int32_t> tokens,
                                 size_t length, bool float_only = false,
                                 const std::string& format = "compressed-tensors", bool keeps_states = false) {
  CalibratedModel out;
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = format;
  auto plan = make_plan(model.index, config, options, diagnostics);
  if (!plan) {
    out.error = plan.error();
    return out;
  }
  auto forward = plan_forward(model.index, *json::parse(model.config, json::kPython), {1 << 20, 1 << 20});
  REQUIRE(bool(forward));
  auto parsed = config::parse_text(config);
  REQUIRE(bool(parsed));
  auto steps = calibration_steps(parsed->config, forward->architecture);
  if (!steps) {
    out.error = steps.error();
    return out;
  }
  ForwardSession session(forward->architecture, model::InputPrecision::float32);
  REQUIRE(bool(session.pass().set_tokens(tokens, sequences_of(tokens, length))));
  if (keeps_states) session.pass().keep_states();
  BlockCalibration calibration({steps->data(), steps->size()});
  out.rotated_down_input = !steps->empty() && steps->front().rotation.rotates_down_input();
  if (out.rotated_down_input) session.pass().rotate_down_input();
  if (calibration.needs_reference()) session.set_reference(&calibration.reference(), &calibration.reference_sink());
  const auto task_of = [&](const std::string& name) {
    for (const PlannedTensor& planned : plan->tensors)
      if ((planned.name.empty() ? model.index.tensors()[planned.tensor].stored.name : planned.name) == name)
        return in_worker(planned.task);
    FAIL("no task for ", name);
    return TensorTask();
  };
  // A head that is the embedding gets a tensor of its own.
  const auto name_of = [&](const ForwardTensor& tensor) {
    return tensor.slot == kHeadSlot ? forward->steps.back().name + ".weight" : tensor.task.name;
  };
  std::optional<EmbeddingRotation> tables;
  if (!steps->empty() && steps->front().rotation.rotates_stream()) tables.emplace(steps->front().rotation);
  std::string table;
  const Loaded turn = [&](const ForwardTensor& tensor) {
    if (!tables || !out.error.message.empty()) return;
    const std::string name = name_of(tensor);
    if (std::exchange(table, name) != name) REQUIRE(bool(tables->begin(tensor.slot, task_of(name))));
    auto stored = tables->store(session.rows(), session.first_row());
    if (!stored) {
      out.error = stored.error();
      return;
    }
    std::vector<float>& values = out.tables[name];
    values.insert(values.end(), stored->values.begin(), stored->values.end());
    session.replace_rows(stored->values);
  };
  for (uint32_t number = 0; number <= forward->architecture.layers; ++number) {
    const ForwardStep& step = forward->steps[number];
    load_step(model, session, step, number, number == 0 ? turn : Loaded());
    if (number == 0) continue;
    const List<model::BlockWeight> weights = model::block_weights(forward->architecture, number - 1);
    List<std::pair<model::Slot, TensorTask>> tasks;
    for (const model::BlockWeight& weight : weights)
      tasks.push_back({weight.slot, task_of(step.name + "." + weight.name)});
    REQUIRE(bool(calibration.begin(session.part(), session.values(), std::move(tasks))));
    for (size_t part = 0; part < calibration.parts(); ++part) {
      calibration.prepare(part);
      session.set_sink(&calibration);
      for (uint32_t portion = 0; calibration.captures(part) != Capture::nothing && portion < session.pass().portions();
           ++portion)
        REQUIRE(bool(session.run(portion, false)));
      session.set_sink(nullptr);
      if (const auto done = calibration.optimize(part); !done) {
        out.error = done.error();
        return out;
      }
      if (calibration.take_changes()) session.pass().forget_states();
    }
    for (const model::BlockWeight& weight : weights) {
      if (float_only) continue;
      auto stored = calibration.store(weight.slot);
      if (!stored) {
        out.error = stored.error();
        return out;
      }
      out.weight_noise += stored->error.noise;
    }
    if (calibration.take_changes()) session.pass().forget_states();
    run_all(session);
    out.blocks.push_back(session.pass().block());
  }
  const auto last = static_cast<uint32_t>(forward->steps.size() - 1);
  if (tables) load_step(model, session, forward->steps[last], last, turn);
  return out;
}

/// Bits per token. `found` without blocks: the model as it is.
inline double loss_with(const ModelFolder& model, const CalibratedModel& found, std::span<const int32_t> tokens,
                        size_t length, model::InputPrecision precision = model::InputPrecision::float32) {
  auto forward = plan_forward(model.index, *json::parse(model.config, json::kPython), {1 << 20, 1 << 20});
  REQUIRE(bool(forward));
  ForwardSession session(forward->architecture, precision);
  if (found.rotated_down_input) session.pass().rotate_down_input();
  REQUIRE(bool(session.pass().set_tokens(tokens, sequences_of(tokens, length))));
  const Loaded replace = [&](const ForwardTensor& tensor) {
    const bool is_head = tensor.slot == kHeadSlot && found.tables.contains(forward->steps.back().name + ".weight");
    const auto table = found.tables.find(is_head ? forward->steps.back().name + ".weight" : tensor.task.name);
    if (table == found.tables.end()) return;
    if (tensor.slot == kFinalNormSlot) session.pass().final_norm() = table->second;
    const auto first = table->second.begin() + session.first_row() * forward->architecture.hidden;
    session.replace_rows({first, first + static_cast<ptrdiff_t>(session.rows().size())});
  };
  for (uint32_t number = 0; number < forward->steps.size(); ++number) {
    load_step(model, session, forward->steps[number], number, replace);
    if (number == 0 || number > forward->architecture.layers) continue;
    if (!found.blocks.empty()) {
      const auto inputs = session.pass().block().inputs;
      session.pass().block() = found.blocks[number - 1];
      session.pass().block().inputs = inputs;
    }
    run_all(session);
  }
  double nats = 0;
  for (size_t i = 0; i < session.pass().sequences(); ++i) nats += session.pass().loss_of(i);
  return nats / 0.6931471805599453 / static_cast<double>(session.pass().sequences() * (length - 1));
}

}  // namespace wasmquant::testing
