#include "tensors.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "formats/safetensors/safetensors.h"
#include "kernels/kernels.h"

namespace conformance {

using wasmquant::Error;
using wasmquant::ErrorCode;
using wasmquant::Result;
using wasmquant::StorageDtype;

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                   [](FILE* f) { return f ? std::fclose(f) : 0; });
  if (!file) return Error{ErrorCode::argument_invalid, path, std::strerror(errno)};
  std::string bytes;
  char chunk[1 << 16];
  while (const size_t count = std::fread(chunk, 1, sizeof chunk, file.get())) bytes.append(chunk, count);
  if (std::ferror(file.get())) return Error{ErrorCode::argument_invalid, path, std::strerror(errno)};
  return bytes;
}

namespace {

template <class Stored>
std::vector<double> widen(const uint8_t* bytes, size_t size) {
  std::vector<double> values(size / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::vector<double> widen_halves(const uint8_t* bytes, size_t size, bool is_bfloat16) {
  std::vector<uint16_t> bits(size / 2);
  std::memcpy(bits.data(), bytes, size);
  std::vector<float> values(bits.size());
  is_bfloat16 ? wasmquant::kernels::widen_bf16(bits, values.data())
              : wasmquant::kernels::widen_f16(bits, values.data());
  return {values.begin(), values.end()};
}

Result<std::vector<double>> values_of(StorageDtype dtype, const uint8_t* bytes, size_t size) {
  switch (dtype) {
    case StorageDtype::F32:
      return widen<float>(bytes, size);
    case StorageDtype::F64:
      return widen<double>(bytes, size);
    case StorageDtype::F16:
    case StorageDtype::BF16:
      return widen_halves(bytes, size, dtype == StorageDtype::BF16);
    case StorageDtype::I8:
      return widen<int8_t>(bytes, size);
    case StorageDtype::I16:
      return widen<int16_t>(bytes, size);
    case StorageDtype::I32:
      return widen<int32_t>(bytes, size);
    case StorageDtype::I64:
      return widen<int64_t>(bytes, size);
    case StorageDtype::U16:
      return widen<uint16_t>(bytes, size);
    case StorageDtype::U32:
      return widen<uint32_t>(bytes, size);
    case StorageDtype::U64:
      return widen<uint64_t>(bytes, size);
    case StorageDtype::BOOL:
    case StorageDtype::U8:
    case StorageDtype::F8_E4M3:
    case StorageDtype::F8_E5M2:
    case StorageDtype::F8_E8M0:
    case StorageDtype::F8_E4M3FNUZ:
    case StorageDtype::F8_E5M2FNUZ:
      return widen<uint8_t>(bytes, size);
    default:  // packed below a byte, complex, or blocks of GGUF
      break;
  }
  return Error{ErrorCode::dtype_unsupported, "", std::string(info_of(dtype).name) + " tensors are not compared"};
}

}  // namespace

Result<const TensorFiles::File*> TensorFiles::open(const std::string& file) {
  if (const auto known = files_.find(file); known != files_.end()) return &known->second;
  TRY(bytes, read_file(folder_ + "/" + file));
  const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  TRY(index, wasmquant::safetensors::read_index(view, bytes.size()));
  return &files_.emplace(file, File{std::move(bytes), std::move(index)}).first->second;
}

Result<Tensor> TensorFiles::read(const std::string& file, const std::string& key) {
  TRY(opened, open(file));
  for (const wasmquant::StoredTensor& stored : opened->index.tensors) {
    if (stored.name != key) continue;
    const auto* bytes = reinterpret_cast<const uint8_t*>(opened->bytes.data()) + stored.begin;
    TRY(values, values_of(stored.dtype, bytes, static_cast<size_t>(stored.end - stored.begin)));
    return Tensor{stored.dtype, stored.shape, std::move(values)};
  }
  return Error{ErrorCode::tensor_missing, file, "no tensor is called " + key};
}

}  // namespace conformance
