// Any bytes as an .npy file and as an .npz archive, fed in pieces as they are asked for. Whatever is accepted lies
// inside the file, has the bytes that dtype and shape need, and in an archive overlaps nothing else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"
#include "formats/safetensors/safetensors.h"
#include "require.h"

namespace {

using namespace wasmquant;

void check(const StoredTensor& tensor, size_t size) {
  require(tensor.begin <= tensor.end && tensor.end <= size);
  const auto bytes = safetensors::tensor_bytes(tensor.dtype, tensor.shape, "");
  require(bytes && *bytes == tensor.end - tensor.begin);
}

void check(const Error& error) { require(error.message.size() < 1024 && error.where.size() < 1024); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  if (npy::looks_like_npy(file)) {
    for (size_t given = std::min<size_t>(size, 6);;) {
      const auto need = npy::need(file.first(given), size);
      if (!need) return check(need.error()), 0;
      if (*need == 0) break;
      require(*need > given && *need <= size);
      given = *need;
    }
    const auto tensor = npy::read_tensor(file, size);
    tensor ? check(*tensor, size) : check(tensor.error());
    return 0;
  }
  npz::Reader reader(size);
  for (size_t calls = 0;; ++calls) {
    const auto need = reader.need();
    if (need.bytes == 0) break;
    require(calls <= 4 * size + 4 && need.offset <= size && need.bytes <= size - need.offset);
    const Status fed = reader.feed(file.subspan(need.offset, need.bytes));
    if (!fed) return check(fed.error()), 0;
    const auto next = reader.need();
    require(next.offset != need.offset || next.bytes != need.bytes);
  }
  uint64_t end = 0, inflated = 0;
  for (const StoredTensor& tensor : reader.tensors()) {
    check(tensor, size);
    require(tensor.begin >= end);
    end = tensor.end;
  }
  for (const DeflatedFile& array : reader.deflated()) {
    require(array.begin <= array.end && array.end <= size);
    inflated += array.bytes;
  }
  require(inflated <= npz::kMaxInflatedBytes);
  return 0;
}
