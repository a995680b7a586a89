// tiny-llama with its own texts: calibrated on one, its loss measured on the other.
#pragma once
#include <string>
#include <vector>

#include "calibration/calibrated_model.h"

namespace wasmquant::testing {

inline const std::string kReference = "files/tiny-llama-reference/";
/// Tokens of a sequence.
inline constexpr size_t kLength = 256;

/// The first sequences of tiny-llama's `calib` or `validation` text.
inline std::vector<int32_t> tokens_of(const std::string& name, size_t sequences) {
  auto tokens = file_of(kReference + name + "_tokens.safetensors").tensor<int32_t>("input_ids");
  tokens.resize(sequences * kLength);
  return tokens;
}

inline std::string calibration_config_of(const std::string& spec, const std::string& rest) {
  return R"({"global_quant_config": {"weight": )" + spec + R"(}, "exclude": ["lm_head"])" + rest + "}";
}
inline const std::string kCalibrationInt4 =
    R"({"dtype": "int4", "qscheme": "per_group", "group_size": 64, "ch_axis": -1})";
inline const std::string kCalibrationInt8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";

/// What tiny-llama in int4 loses on the validation text with `algorithms`, items of algo_config.
struct Int4Loss {
  ModelFolder model{"files/tiny-llama"};
  std::vector<int32_t> calib = tokens_of("calib", 8), validation = tokens_of("validation", 16);

  double operator()(const std::string& algorithms) const {
    const CalibratedModel found = calibrate(
        model, calibration_config_of(kCalibrationInt4, R"(, "algo_config": [)" + algorithms + "]"), calib, kLength);
    REQUIRE_MESSAGE(found.blocks.size() == 4, found.error.where, ": ", found.error.message);
    CHECK(found.weight_noise > 0);
    return loss_with(model, found, validation, kLength);
  }
};

}  // namespace wasmquant::testing
