// Any bytes as an importance matrix. Whatever is accepted has finite means, one for each sum, and survives being
// written and read again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/gguf/imatrix.h"
#include "require.h"

namespace {

using namespace wasmquant;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto matrix = imatrix::read({data, size});
  if (!matrix) {
    require(matrix.error().message.size() < 1024 && matrix.error().where.size() < 512);
    return 0;
  }
  require(!matrix->entries.empty());
  bool has_experts = false;
  for (const imatrix::WeightImportance& entry : matrix->entries) {
    require(!entry.counts.empty() && entry.sums.size() % entry.counts.size() == 0);
    require(matrix->find(entry.name) != nullptr);
    for (const float mean : entry.means()) require(std::isfinite(mean) && mean >= 0);
    has_experts |= entry.counts.size() > 1;
  }
  if (has_experts) return 0;
  const auto file = imatrix::write(*matrix, imatrix::FileFormat::gguf);
  if (!file) return 0;  // names of GGUF tensors are shorter than those of .dat files
  const std::vector<uint8_t> bytes(file->begin(), file->end());
  const auto again = imatrix::read(bytes);
  require(again && again->entries.size() == matrix->entries.size());
  for (size_t i = 0; i < again->entries.size(); ++i) require(again->entries[i].sums == matrix->entries[i].sums);
  return 0;
}
