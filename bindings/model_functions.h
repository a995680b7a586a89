// Forward passes that JavaScript drives. Contracts: web/lib/engine/module.ts.
#pragma once
#include <memory>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "model_objects.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/calibration/block_sensitivity.h"
#include "pipeline/calibration/embedding_rotation.h"
#include "pipeline/calibration/layer_inputs.h"
#include "pipeline/forward/forward_session.h"

namespace wasmquant::bindings {

/// config.json of a model as {"config": object, "constants": [{"path", "value"}]}: `constants` are the numbers that
/// JSON has no words for ("Infinity", "-Infinity", "NaN"), null in `config`; a path has names and indexes.
/// Errors: json-invalid.
std::string model_config(std::string text);

/// The steps of a forward pass, as forward_plan_json. `options`: {"tileBytes", "columnTileBytes", "length"}.
std::string forward_plan(const BoundModelIndex& model, std::string config, std::string options);

/// The algorithms of a config that go through a model block by block. Errors: those of parse_text.
std::string calibrated_algorithms(std::string config);

class BoundForwardPass : Counted {
 public:
  /// `options`: {"activations": "float32" | "int8"}
  BoundForwardPass(std::string config, std::string options);
  std::string set_tokens(Address tokens, double count, uint32_t length);
  std::string begin(uint32_t step, uint32_t slot, std::string task);
  std::string reads(uint32_t tile);
  std::string load(uint32_t tile);
  std::string run(uint32_t portion);
  std::string losses();
  int32_t next_token(uint32_t sequence);
  // Inputs of linear layers, seen by the observers of a plan, of every run() that follows.
  std::string observe(std::string requests);
  std::string next_pass();
  std::string observed();
  // Calibration (block_calibration.h) of the block that is loaded.
  std::string calibrate(std::string config);
  std::string begin_block(std::string tasks);
  std::string prepare(uint32_t part);
  std::string capture(uint32_t portion);
  std::string optimize(uint32_t part);
  std::string store(uint32_t slot);
  // Embedding, final norm and head, where a rotation changes them (embedding_rotation.h).
  std::string begin_table(uint32_t slot, std::string task);
  std::string store_rows();
  // What quantizing a layer of the block that is loaded would do (block_sensitivity.h).
  std::string begin_sensitivity();
  std::string finish_sensitivity();
  std::string sensitivity(uint32_t slot, std::string task);

 private:
  std::string stored();

  std::unique_ptr<ForwardSession> session_;
  Error error_;
  std::unique_ptr<LayerInputs> inputs_;
  List<double> losses_;
  List<CalibrationStep> steps_;
  std::unique_ptr<BlockCalibration> calibration_;
  std::unique_ptr<EmbeddingRotation> tables_;
  StoredChange stored_;
  std::unique_ptr<BlockSensitivity> sensitivity_;
};

}  // namespace wasmquant::bindings
