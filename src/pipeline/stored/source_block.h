// What a checkpoint says of how its weights are stored: its tool, and the object that the tool wrote.
#pragma once
#include <string>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// The block of one checkpoint. Null and without method: it says nothing.
struct SourceBlock {
  json::Value value;
  std::string method;  // quant_method, or what stands for it
  std::string where;   // JSON pointer in config.json, or the name of the file that has it

  bool is_declared() const noexcept { return !value.is_null() || !method.empty(); }
};

/// From config.json, or from a file of the folder where tools wrote it before config.json held it; `model` may be null.
/// Errors: json-invalid at the file.
Result<SourceBlock> source_block(const json::Value& config, const ModelIndex* model);

/// Warnings about keys of the block that nothing is known of. `config`: config.json. Errors: format-unsupported at a key
/// that changes what the codes stand for in a way that is not decoded.
Status check_fields(const SourceBlock& block, const json::Value& config, List<Diagnostic>& remarks);

}  // namespace wasmquant
