// Any bytes as a safetensors file. Whatever is accepted must tile the file, be the same when fed in two pieces, and
// survive being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "formats/safetensors/safetensors.h"
#include "require.h"

namespace {

using namespace wasmquant;

bool is_same(const FileIndex& a, const FileIndex& b) {
  require(a.tensors.size() == b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const StoredTensor &left = a.tensors[i], &right = b.tensors[i];
    if (left.name != right.name || left.dtype != right.dtype || left.shape != right.shape) return false;
    if (left.end - left.begin != right.end - right.begin) return false;
  }
  return true;
}

Result<FileIndex> read_in_two(std::span<const uint8_t> file, size_t cut) {
  std::vector<uint8_t> prefix(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut));
  for (int round = 0; round < 3; ++round) {
    const auto need = safetensors::need(prefix, file.size());
    if (!need) return need.error();
    if (need->bytes == 0) return safetensors::read_index(prefix, file.size());
    require(need->bytes > prefix.size() && need->bytes <= file.size());
    prefix.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(need->bytes));
  }
  std::abort();  // length, header: never more than two reads
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  const auto index = safetensors::read_index(file, size);
  const auto pieces = read_in_two(file, size == 0 ? 0 : data[size - 1] % (size + 1));
  require(static_cast<bool>(index) == static_cast<bool>(pieces));
  if (!index) {
    require(index.error().where.size() < 256 && index.error().message.size() < 1024);
    return 0;
  }
  require(is_same(*index, *pieces));

  List<safetensors::TensorHeader> entries;
  uint64_t end = index->tensors.empty() ? size : index->tensors.front().begin;
  for (const StoredTensor& tensor : index->tensors) {
    require(tensor.begin == end && tensor.end >= tensor.begin);
    end = tensor.end;
    entries.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  require(end == size);
  const auto header = safetensors::write_header(entries, index->metadata);
  require(static_cast<bool>(header));
  std::vector<uint8_t> again(header->bytes.begin(), header->bytes.end());
  const auto second = safetensors::read_index(again, header->file_bytes);
  require(second && second->metadata.size() >= index->metadata.size());
  require(is_same(*index, *second));
  return 0;
}
