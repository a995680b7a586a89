// What AMD Quark's loader, which transformers calls, cannot read of files in its own format.
#pragma once
#include <optional>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// The first quantized layer that it cannot read, with the reason; nullopt if it reads all. Tried with AMD Quark 0.13,
/// every dtype and scheme that the format stores (`npm run test:seams -- 100 --loaders`).
std::optional<LoaderLimit> quark_loader_limit(const List<LayerPlan>& layers, const families::ModelFamily& family);

}  // namespace wasmquant
