#include "model/rope_config.h"

#include "core/message.h"

namespace wasmquant::model {
namespace {

void read_number(const json::Value& value, double& out) {
  if (value.is_finite() && value.as_number() > 0) out = value.as_number();
}

Status read_scaling(const json::Value& scaling, const char* where, Rope& out) {
  const json::Value& named = scaling["rope_type"];
  const std::string& type = named.is_string() ? named.as_string() : scaling["type"].as_string();
  if (type == "linear") {
    out.scaling = Rope::Scaling::linear;
  } else if (type == "llama3") {
    out.scaling = Rope::Scaling::llama3;
  } else if (!type.empty() && type != "default" && type != "dynamic") {
    return error_at(ErrorCode::not_implemented, where,
                    "the forward pass does not support rotation {q}; it supports default, linear, llama3 and dynamic",
                    type);
  }
  read_number(scaling["rope_theta"], out.theta);
  read_number(scaling["factor"], out.factor);
  read_number(scaling["low_freq_factor"], out.low_factor);
  read_number(scaling["high_freq_factor"], out.high_factor);
  read_number(scaling["original_max_position_embeddings"], out.original_positions);
  double part = 1;
  read_number(scaling["partial_rotary_factor"], part);
  if (part != 1)
    return error_at(ErrorCode::not_implemented, where, "the forward pass does not support partial rotation");
  return {};
}

}  // namespace

Status read_rope(const json::Value& config, Rope& full, Rope& sliding) {
  const bool is_gemma3 = config["model_type"].as_string() == "gemma3_text";
  if (is_gemma3) full.theta = 1e6;
  read_number(config["rope_theta"], full.theta);
  const json::Value& parameters = config["rope_parameters"];
  const json::Value& of_full = parameters["full_attention"];
  TRY_VOID(read_scaling(of_full.is_object() ? of_full : parameters, "/rope_parameters", full));
  TRY_VOID(read_scaling(config["rope_scaling"], "/rope_scaling", full));
  double part = 1;
  read_number(config["partial_rotary_factor"], part);
  if (part != 1)
    return error_at(ErrorCode::not_implemented, "/partial_rotary_factor",
                    "the forward pass does not support partial rotation");
  if (!is_gemma3 && !of_full.is_object()) {
    sliding = full;
    return {};
  }
  read_number(config["rope_local_base_freq"], sliding.theta);
  return read_scaling(parameters["sliding_attention"], "/rope_parameters/sliding_attention", sliding);
}

}  // namespace wasmquant::model
