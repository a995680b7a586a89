// A reader and a writer for each of the two formats; sums are checked before use.
#include "formats/gguf/imatrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/message.h"
#include "core/order.h"
#include "formats/gguf/gguf.h"
#include "formats/tensor_name.h"

namespace wasmquant::imatrix {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr std::string_view kType = "general.type", kDatasets = "imatrix.datasets", kChunks = "imatrix.chunk_count",
                           kChunkSize = "imatrix.chunk_size";

float float_at(const uint8_t* bytes, uint64_t index) noexcept {
  float value;
  std::memcpy(&value, bytes + index * sizeof(float), sizeof(float));
  return value;
}

Status check_value(float value, std::string_view name, uint64_t column) {
  if (value >= 0 && std::isfinite(value)) return {};
  return error_at(ErrorCode::value_not_finite, shown_name(name),
                  "the importance of column {} is negative, NaN or infinite", column);
}

// Combines NAME.in_sum2 and NAME.counts.
Result<WeightImportance> entry_of(std::span<const uint8_t> file, const gguf::Tensor& sums, const gguf::Tensor& counts) {
  WeightImportance entry;
  entry.name = sums.name.substr(0, sums.name.size() - kSums.size());
  if (sums.type != GgmlType::f32 || counts.type != GgmlType::f32)
    return error_at(ErrorCode::dtype_unsupported, entry.name, "sums and counts of an importance matrix are F32");
  const uint64_t values = (sums.end - sums.begin) / sizeof(float),
                 matrices = (counts.end - counts.begin) / sizeof(float);
  if (matrices == 0 || values == 0 || values % matrices != 0)
    return error_at(ErrorCode::file_invalid, entry.name, "{} sums do not match {} counts", values, matrices);
  const uint64_t columns = values / matrices;
  for (uint64_t m = 0; m < matrices; ++m) {
    const float count = std::round(float_at(file.data() + counts.begin, m));
    TRY_VOID(check_value(count, counts.name, m));
    entry.counts.push_back(count > 0 ? count : 1);
    for (uint64_t i = m * columns; i < (m + 1) * columns; ++i) {
      const float sum = float_at(file.data() + sums.begin, i);
      TRY_VOID(check_value(sum, entry.name, i % columns));
      entry.sums.push_back(count > 0 ? sum : 1);
    }
  }
  return entry;
}

Result<Matrix> read_gguf(std::span<const uint8_t> file) {
  TRY(index, gguf::read_index(file, file.size()));
  Matrix matrix;
  if (index.metadata.find_text(kType) != "imatrix")
    return error_at(
        ErrorCode::file_invalid, kType,
        "this GGUF file is not an importance matrix: {} is not \"imatrix\". Give a file that the command imatrix wrote",
        kType);
  matrix.chunks = index.metadata.find_count(kChunks).value_or(0);
  matrix.chunk_size = index.metadata.find_count(kChunkSize).value_or(0);
  gguf::ArrayView datasets(index.metadata.find(kDatasets));
  if (datasets.count() != 0 && datasets.element_type() == gguf::ValueType::text) matrix.dataset = datasets.next_text();
  for (size_t i = 0; i < index.tensors.size(); ++i) {
    const gguf::Tensor& sums = index.tensors[i];
    if (!sums.name.ends_with(kSums)) continue;
    const std::string wanted = sums.name.substr(0, sums.name.size() - kSums.size()) + std::string(kCounts);
    const gguf::Tensor* counts = nullptr;
    const size_t count = index.tensors.size();
    for (size_t k = 1; k < count && counts == nullptr; ++k)  // usually the next one
      if (index.tensors[(i + k) % count].name == wanted) counts = &index.tensors[(i + k) % count];
    if (counts == nullptr)
      return error_at(ErrorCode::tensor_missing, wanted, "the counts of {} are not in the importance matrix",
                      sums.name);
    TRY(entry, entry_of(file, sums, *counts));
    matrix.entries.push_back(std::move(entry));
  }
  return matrix;
}

class DatReader {
 public:
  explicit DatReader(std::span<const uint8_t> file) : file_(file) {}

  Result<Matrix> run() {
    Matrix matrix;
    TRY(entries, number("the number of weights", kLeastEntryBytes));
    for (uint64_t i = 0; i < entries; ++i) TRY_VOID(read_entry(matrix));
    const auto twice =
        first_repeated(matrix.entries.size(), [&](uint32_t i) -> std::string_view { return matrix.entries[i].name; });
    if (twice)
      return error_at(ErrorCode::tensor_duplicate, shown_name(matrix.entries[*twice].name),
                      "this weight appears twice in the importance matrix");
    if (left() == 0) return matrix;
    TRY(chunks, number("the number of chunks", 0));
    matrix.chunks = chunks;
    if (left() == 0) return matrix;
    TRY(bytes, number("the length of the text's path", 1));
    matrix.dataset = text(bytes);
    return matrix;
  }

 private:
  static constexpr uint64_t kLeastEntryBytes = 3 * sizeof(int32_t) + sizeof(float);
  uint64_t left() const noexcept { return file_.size() - at_; }

  // Reads an i32 count of items of `unit` bytes each.
  Result<uint64_t> number(const char* what, uint64_t unit) {
    int32_t value = -1;
    if (left() < sizeof(value))
      return error_at(ErrorCode::file_truncated, text_of("byte {}", at_), "the importance matrix ends before {}", what);
    std::memcpy(&value, file_.data() + at_, sizeof(value));
    const uint64_t begin = at_;
    at_ += sizeof(value);
    if (value < 0 || (unit != 0 && static_cast<uint64_t>(value) > left() / unit))
      return error_at(
          ErrorCode::file_invalid, text_of("byte {}", begin),
          "{} is {}, and {} bytes follow: this is neither a GGUF file nor a .dat file of an importance matrix", what,
          value, left());
    return static_cast<uint64_t>(value);
  }
  std::string_view text(uint64_t bytes) noexcept {
    const auto* here = reinterpret_cast<const char*>(file_.data()) + at_;
    at_ += bytes;
    return {here, static_cast<size_t>(bytes)};
  }

  Status read_entry(Matrix& matrix) {
    TRY(name_bytes, number("the length of a name", 1));
    if (name_bytes == 0 || name_bytes > gguf::kMaxNameBytes)
      return error_at(ErrorCode::file_invalid, text_of("byte {}", at_), "a name of {} bytes; it must have 1 to {}",
                      name_bytes, gguf::kMaxNameBytes);
    WeightImportance& entry = matrix.entries.emplace_back();
    entry.name = text(name_bytes);
    TRY(chunks, number("the number of chunks", 0));
    TRY(values, number("the number of columns", sizeof(float)));
    if (values == 0)
      return error_at(ErrorCode::file_invalid, shown_name(entry.name), "the importance matrix has no columns for it");
    entry.counts.push_back(chunks > 0 ? static_cast<float>(chunks) : 1);
    for (uint64_t i = 0; i < values; ++i) {
      entry.sums.push_back(float_at(file_.data() + at_, i));
      TRY_VOID(check_value(entry.sums.back(), entry.name, i));
    }
    at_ += values * sizeof(float);
    return {};
  }

  std::span<const uint8_t> file_;
  uint64_t at_ = 0;
};

void append_float(std::string& out, float value) { out.append(reinterpret_cast<const char*>(&value), sizeof(value)); }

std::string write_dat(const Matrix& matrix) {
  std::string out;
  gguf::append_u32(out, static_cast<uint32_t>(matrix.entries.size()));
  for (const WeightImportance& entry : matrix.entries) {
    const auto size = static_cast<float>(std::max<uint64_t>(matrix.chunk_size, 1));
    const float chunks = std::ceil(*std::max_element(entry.counts.begin(), entry.counts.end()) / size);
    gguf::append_u32(out, static_cast<uint32_t>(entry.name.size()));
    out += entry.name;
    gguf::append_u32(out, static_cast<uint32_t>(chunks));
    gguf::append_u32(out, static_cast<uint32_t>(entry.sums.size()));
    for (const float mean : entry.means()) append_float(out, mean * chunks);
  }
  gguf::append_u32(out, static_cast<uint32_t>(matrix.chunks));
  gguf::append_u32(out, static_cast<uint32_t>(matrix.dataset.size()));
  out += matrix.dataset;
  return out;
}

Result<std::string> write_gguf(const Matrix& matrix) {
  gguf::Metadata metadata;
  metadata.set_text(kType, "imatrix");
  gguf::ArrayBuilder datasets(gguf::ValueType::text);
  if (!matrix.dataset.empty()) datasets.add_text(matrix.dataset);
  metadata.set(std::move(datasets).finish(std::string(kDatasets)));
  metadata.set_u32(kChunks, static_cast<uint32_t>(matrix.chunks));
  metadata.set_u32(kChunkSize, static_cast<uint32_t>(matrix.chunk_size));
  for (const auto& [key, value] : matrix.properties) metadata.set_text(key, value);
  List<gguf::NewTensor> tensors;
  for (const WeightImportance& entry : matrix.entries) {
    tensors.push_back({entry.name + std::string(kSums),
                       GgmlType::f32,
                       {entry.counts.size(), entry.sums.size() / entry.counts.size()}});
    tensors.push_back({entry.name + std::string(kCounts), GgmlType::f32, {entry.counts.size(), 1}});
  }
  TRY(header, gguf::write_header(metadata, std::span<const gguf::NewTensor>(tensors.data(), tensors.size())));
  std::string out = std::move(header.bytes);
  for (size_t i = 0; i < matrix.entries.size(); ++i) {
    const WeightImportance& entry = matrix.entries[i];
    for (const float sum : entry.sums) append_float(out, sum);
    out.resize(static_cast<size_t>(header.offsets[2 * i + 1]));
    for (const float count : entry.counts) append_float(out, count);
    out.resize(static_cast<size_t>(i + 1 < matrix.entries.size() ? header.offsets[2 * i + 2] : header.file_bytes));
  }
  return out;
}

}  // namespace

std::vector<float> WeightImportance::means() const {
  std::vector<float> means(sums.size());
  const size_t columns = sums.size() / counts.size();
  for (size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / columns];
    means[i] = count > 0 ? sums[i] / count : 1;
  }
  return means;
}

const WeightImportance* Matrix::find(std::string_view name) const noexcept {
  for (const WeightImportance& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

Result<Matrix> read(std::span<const uint8_t> file) {
  const bool is_gguf = file.size() >= 4 && std::memcmp(file.data(), "GGUF", 4) == 0;
  auto matrix = is_gguf ? read_gguf(file) : DatReader(file).run();
  if (matrix && matrix->entries.empty())
    return error_at(ErrorCode::file_invalid, "", "this importance matrix names no weights");
  return matrix;
}

Result<std::string> write(const Matrix& matrix, FileFormat format) {
  if (format == FileFormat::gguf) return write_gguf(matrix);
  return write_dat(matrix);
}

}  // namespace wasmquant::imatrix
