// A pass of two portions, and the tasks of its blocks.
#pragma once
#include "bindings/bound_pass.h"
#include "handles/calibration.h"

namespace wasmquant::testing {

struct CalibratedPass : BoundPass {
  explicit CalibratedPass(const std::string& asked, const std::string& folder = "files/forward/llama",
                          uint32_t member = 0, uint32_t members = 1)
      : BoundPass(folder, lengths(), tokens()),
        config(asked),
        work(work_for(model, config)),
        calibration(taken(BoundCalibration::make(*pass, config, member, members))) {}

  static std::vector<int32_t> tokens() {
    std::vector<int32_t> out(640);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(i * i % 31);
    return out;
  }
  static std::string lengths() {
    std::string out = R"({"lengths": [16)";
    for (size_t i = 1; i < tokens().size() / 16; ++i) out += ", 16";
    return out + "]}";
  }

  uint32_t task_of(const std::string& name) const {
    for (uint32_t number = 0;; ++number)
      if (taken(work->task(number)).name == name) return number;
  }

  /// [{"slot", "items"}] of a block.
  std::string tasks(uint32_t step) const {
    json::Array rows;
    for (const model::BlockWeight& weight : model::block_weights(plan.architecture)) {
      json::Value& row = rows.emplace_back();
      row.set("slot", static_cast<int64_t>(weight.slot));
      row.set("items", json::Value(json::Array{
                           json::Value(static_cast<int64_t>(task_of(plan.steps[step].name + "." + weight.name)))}));
    }
    return json::write(json::Value(std::move(rows)));
  }

  std::string config;
  std::unique_ptr<BoundWork> work;  // of the plan
  std::unique_ptr<BoundCalibration> calibration;
};

inline std::string calibrated_config(const std::string& algorithms) {
  return R"({"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}},
    "exclude": ["lm_head"], "algo_config": [)" +
         algorithms + "]}";
}

inline std::string rotated_config(const std::string& options) {
  return R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}},
    "exclude": ["lm_head"], "pre_quant_opt_config": [{"name": "rotation", "scaling_layers":
    {"first_layer": [], "middle_layers": [], "last_layer": []}, )" +
         options + "}]}";
}

/// What a tile writes, in order.
inline std::string written_by(const TileResult& tile) {
  std::string out;
  for (const TileWrite& write : tile.writes) out.append(reinterpret_cast<const char*>(write.pointer), write.bytes);
  return out;
}

}  // namespace wasmquant::testing
