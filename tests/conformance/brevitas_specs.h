// Brevitas' settings as specs, the way Quark's brevitas dialect maps them (aihwkit-brevitas 2.3 to 2.7).
#pragma once

#include "dialect_case.h"
#include "observers/observer.h"

namespace conformance {

struct BrevitasTensor {
  wasmquant::QuantizationSpec spec;
  wasmquant::ObserverOptions options;
};

/// `config` is a tensor's settings; the version is the manifest's.
Result<BrevitasTensor> brevitas_weight_of(const DialectCase& c, const wasmquant::json::Value* config);
Result<BrevitasTensor> brevitas_input_of(const DialectCase& c, const wasmquant::json::Value* config);

/// All batches of a tensor whose first dimension counts them.
Result<wasmquant::Observation> observe_all(const BrevitasTensor& tensor, const Tensor& batches);
/// One whole tensor.
Result<wasmquant::Observation> observe_one(const BrevitasTensor& tensor, const Tensor& x);

}  // namespace conformance
