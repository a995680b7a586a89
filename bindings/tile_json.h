// Reads, writes and errors of tiles as JavaScript sees them. Contracts: TileRead and TileWrite of web/lib/engine/module.ts.
#pragma once
#include <span>

#include "core/list.h"
#include "kernels/kernels.h"
#include "marshal.h"
#include "pipeline/task/session.h"

namespace wasmquant::bindings {

/// TileRead[]
json::Value reads_json(const List<TileRead>& reads);
/// {"writes": TileWrite[], "sums", "units"}; `numbers` holds the sums meanwhile.
json::Value writes_json(std::span<const TileWrite> writes, std::span<const kernels::ErrorSums> sums,
                        List<double>& numbers);
/// {"tileBytes", "columnTileBytes"}; what is missing keeps its default.
TileBytes tile_bytes_of(const json::Value& options);

}  // namespace wasmquant::bindings
