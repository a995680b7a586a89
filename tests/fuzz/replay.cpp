// Runs the cases of a file and prints a digest of each, so that two builds can be compared line by line:
//   wasmquant_replay CASES     CASES: for each case 1. u8 kind  2. u32 bytes, little-endian  3. the input
// Kinds: 0 kernels, 1 plans, 2 column-wise algorithms, 3 what the readers, the config and the patterns say about
// arbitrary bytes.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cases/answer_case.h"
#include "cases/column_case.h"
#include "cases/kernel_case.h"
#include "cases/plan_case.h"

namespace {

std::vector<uint8_t> read_file(const char* path) {
  std::vector<uint8_t> bytes;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return bytes;
  uint8_t part[65536];
  for (size_t count; (count = std::fread(part, 1, sizeof part, file)) > 0;)
    bytes.insert(bytes.end(), part, part + count);
  std::fclose(file);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wasmquant::fuzz;
  const std::vector<uint8_t> bytes = argc == 2 ? read_file(argv[1]) : std::vector<uint8_t>{};
  if (bytes.empty()) {
    std::fputs("usage: wasmquant_replay CASES\n", stderr);
    return 2;
  }
  for (size_t at = 0; at + 5 <= bytes.size();) {
    const uint8_t kind = bytes[at];
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at + 1, 4);
    at += 5;
    if (size > bytes.size() - at) return 2;
    const std::span<const uint8_t> input(bytes.data() + at, size);
    at += size;
    const uint64_t digest = kind == 0   ? KernelCase(input).run()
                            : kind == 1 ? run_plan_case(input)
                            : kind == 2 ? run_column_case(input)
                                        : run_answer_case(input);
    std::printf("%u %016" PRIx64 "\n", kind, digest);
  }
  return 0;
}
