// Reads, writes and errors of tiles as JSON. Contracts: TileRead and TileWrite of web/lib/engine/module.ts.
#pragma once
#include <span>

#include "core/list.h"
#include "kernels/kernels.h"
#include "marshal.h"
#include "pipeline/task/session.h"

namespace wasmquant::bindings {

json::Value reads_json(const List<TileRead>& reads);
/// {"writes": TileWrite[], "sums", "units"}; `numbers` stores the sums.
json::Value writes_json(std::span<const TileWrite> writes, std::span<const kernels::ErrorSums> sums,
                        List<double>& numbers);
/// {"tileBytes", "columnTileBytes"}; missing members keep their defaults.
TileBytes tile_bytes_of(const json::Value& options);

}  // namespace wasmquant::bindings
