#include "border/marshal.h"

namespace wasmquant::bindings {

TileBytes tile_bytes_of(const json::Value& options) {
  TileBytes bytes;
  if (const json::Value& rows = options["tileBytes"]; rows.is_integer())
    bytes.rows = static_cast<uint64_t>(rows.as_integer());
  if (const json::Value& columns = options["columnTileBytes"]; columns.is_integer())
    bytes.columns = static_cast<uint64_t>(columns.as_integer());
  return bytes;
}

}  // namespace wasmquant::bindings
