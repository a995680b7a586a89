// transformers.js_config of config.json, as far as it describes the files of a folder:
//   use_external_data_format  by file, the number of files with external data
//   dtype                     by part, the dtype that is loaded unless the caller names one
//   kv_cache_dtype            by dtype, the element type of the cached keys and values (transformers.js 3)
// and the same in device_config, by device. Source: transformers.js 4.3, models/session.js, utils/model-loader.js.
#pragma once
#include <string>

#include "core/json.h"
#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// `text`, of which `config` is the content, with a description that is true of the plan's ONNX file and of those
/// next to it. Only keys that describe files are touched. Errors: those of json::set_member.
Result<std::string> describe_onnx_files(std::string text, const json::Value& config, const OnnxOutput& output);

}  // namespace wasmquant
