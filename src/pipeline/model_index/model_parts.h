// Models in several files without an index file: which parts are missing, and their order.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {

/// A file of the model: its name and what is known of its place.
struct NamedPart {
  std::string_view name;
  const Part* part = nullptr;
};

/// Names of the files next to these that hold the missing parts. Parts whose names do not follow formats/part_name.h
/// are left out, because nothing tells what the others are called.
List<std::string> missing_parts(std::span<const NamedPart> files);

/// The files by model and part; files that are no parts come first, as they are. Errors: tensor-missing if a part is
/// missing, file-invalid if it is there twice; they name a file.
Result<List<uint32_t>> order_of_parts(std::span<const NamedPart> files);

}  // namespace wasmquant
