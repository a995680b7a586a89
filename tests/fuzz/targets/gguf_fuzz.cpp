// Any bytes as a GGUF file. Whatever is accepted lies in the file in order, is the same when fed in pieces, and
// survives being written and read again, its metadata to the byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_split.h"
#include "mutators/mutators.h"
#include "require.h"

namespace {

using namespace wasmquant;

bool is_same(const gguf::Metadata& a, const gguf::Metadata& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (size_t i = 0; i < a.entries().size(); ++i) {
    const gguf::KeyValue &left = a.entries()[i], &right = b.entries()[i];
    if (left.key != right.key || left.type != right.type || left.bytes != right.bytes) return false;
  }
  return true;
}

bool is_same(const gguf::Index& a, const gguf::Index& b) {
  if (a.tensors.size() != b.tensors.size() || !is_same(a.metadata, b.metadata)) return false;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const gguf::Tensor &left = a.tensors[i], &right = b.tensors[i];
    if (left.name != right.name || left.type != right.type || left.shape != right.shape) return false;
    if (left.end - left.begin != right.end - right.begin) return false;
  }
  return true;
}

Result<gguf::Index> read_in_pieces(std::span<const uint8_t> file, size_t cut) {
  for (int round = 0; round < 20; ++round) {
    std::vector<uint8_t> prefix(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut));
    const auto need = gguf::need(prefix, file.size());
    if (!need) return need.error();
    if (need->bytes == 0) return gguf::read_index(prefix, file.size());
    require(need->bytes > cut && need->bytes <= file.size());
    cut = need->bytes;
  }
  std::abort();
}

// Every value through every access.
void touch(const gguf::Metadata& metadata) {
  for (const gguf::KeyValue& entry : metadata.entries()) {
    (void)metadata.find_count(entry.key);
    (void)metadata.find_number(entry.key);
    (void)metadata.find_text(entry.key);
    gguf::ArrayView view(&entry);
    for (uint64_t i = 0; i < view.count(); ++i) {
      if (view.element_type() == gguf::ValueType::text)
        (void)view.next_text();
      else
        (void)view.next_number();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  const auto index = gguf::read_index(file, size);
  const auto pieces = read_in_pieces(file, size == 0 ? 0 : data[size - 1] % (size + 1));
  require(static_cast<bool>(index) == static_cast<bool>(pieces));
  if (!index) {
    require(index.error().message == pieces.error().message && index.error().message.size() < 1024);
    require(index.error().where.size() < 256);
    return 0;
  }
  require(is_same(*index, *pieces));
  if (index->metadata.entries().size() < 100) touch(index->metadata);

  std::vector<gguf::NewTensor> tensors;
  uint64_t end = 0;
  for (const gguf::Tensor& tensor : index->tensors) {
    require(tensor.begin >= end && tensor.end >= tensor.begin && tensor.end <= size);
    require(tensor.begin % index->alignment == 0);
    end = tensor.end;
    tensors.push_back({tensor.name, tensor.type, tensor.shape});
  }
  // Tens of megabytes of padding are right, and take seconds under sanitizers.
  if (index->alignment > 1 << 20 && index->alignment <= gguf::kMaxHeaderBytes) return 0;
  const auto header = gguf::write_header(index->metadata, tensors);
  if (!header) {  // an alignment that makes the header too large
    require(header.error().code == ErrorCode::file_too_large);
    return 0;
  }
  const std::vector<uint8_t> again(header->bytes.begin(), header->bytes.end());
  const auto second = gguf::read_index(again, header->file_bytes);
  require(second && is_same(*index, *second));
  require(static_cast<bool>(gguf::split_by_size(tensors, index->alignment, size / 2)));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_gguf(data, size, max_size, seed);
}
