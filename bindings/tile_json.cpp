#include "tile_json.h"

namespace wasmquant::bindings {

json::Value reads_json(const List<TileRead>& reads) {
  json::Array out;
  for (const TileRead& read : reads) {
    json::Value row;
    row.set("part", static_cast<int64_t>(read.part));
    row.set("file", static_cast<int64_t>(read.file));
    row.set("begin", read.begin);
    row.set("rowBytes", read.row_bytes);
    row.set("stride", read.stride);
    row.set("rows", read.rows);
    row.set("pointer", address(read.pointer));
    out.push_back(std::move(row));
  }
  return out;
}

json::Value writes_json(std::span<const TileWrite> writes, std::span<const kernels::ErrorSums> sums,
                        List<double>& numbers) {
  json::Array rows;
  for (const TileWrite& write : writes) {
    json::Value row;
    row.set("file", static_cast<int64_t>(write.file));
    row.set("offset", write.offset);
    row.set("pointer", address(write.pointer));
    row.set("bytes", write.bytes);
    rows.push_back(std::move(row));
  }
  numbers.clear();
  for (const kernels::ErrorSums& unit : sums)
    for (const double value :
         {unit.signal, unit.quantized, unit.noise, static_cast<double>(unit.max_abs), static_cast<double>(unit.count),
          static_cast<double>(unit.x_not_finite), static_cast<double>(unit.y_not_finite)})
      numbers.push_back(value);
  json::Value out;
  out.set("writes", std::move(rows));
  out.set("sums", address(numbers.data()));
  out.set("units", static_cast<uint64_t>(sums.size()));
  return out;
}

TileBytes tile_bytes_of(const json::Value& options) {
  TileBytes bytes;
  if (const json::Value& rows = options["tileBytes"]; rows.is_integer())
    bytes.rows = static_cast<uint64_t>(rows.as_integer());
  if (const json::Value& columns = options["columnTileBytes"]; columns.is_integer())
    bytes.columns = static_cast<uint64_t>(columns.as_integer());
  return bytes;
}

}  // namespace wasmquant::bindings
