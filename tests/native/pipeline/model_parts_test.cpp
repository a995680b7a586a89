// Parts of models: any subset, in any order, is complete, or its first gap is named.
#include "pipeline/model_index/model_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "formats/part_name.h"

using namespace wasmquant;

namespace {

struct PartFile {
  std::string name;
  Part part;
};

std::vector<NamedPart> named(const std::vector<PartFile>& files) {
  std::vector<NamedPart> out;
  for (const PartFile& file : files) out.push_back({file.name, &file.part});
  return out;
}

}  // namespace

TEST_CASE("model parts: subsets of several models in any order") {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<PartFile> files;
    std::vector<std::string> missing;
    const auto models = static_cast<uint32_t>(1 + random() % 3);
    for (uint32_t m = 0; m < models; ++m) {
      const std::string stem = "m" + std::to_string(m);
      const auto count = static_cast<uint32_t>(1 + random() % 5);
      const auto kept = static_cast<uint32_t>(random() % count + 1);  // at least one part tells of the others
      for (uint32_t number = 1; number <= count; ++number) {
        std::string name = count == 1 ? stem + ".gguf" : part_name({stem + "-", number, count, ".gguf"});
        if (number == kept || random() % 4 != 0)
          files.push_back({std::move(name), {number, count, stem}});
        else
          missing.push_back(std::move(name));
      }
    }
    std::shuffle(files.begin(), files.end(), random);
    const std::vector<NamedPart> parts = named(files);
    List<std::string> found = missing_parts(parts);
    std::sort(found.begin(), found.end());
    std::sort(missing.begin(), missing.end());
    CHECK(std::equal(found.begin(), found.end(), missing.begin(), missing.end()));
    const auto order = order_of_parts(parts);
    REQUIRE(static_cast<bool>(order) == missing.empty());
    if (!order) {
      CHECK(name_of(order.error().code) == "tensor-missing");
      continue;
    }
    for (size_t i = 1; i < order->size(); ++i) {
      const Part &before = files[(*order)[i - 1]].part, &here = files[(*order)[i]].part;
      if (before.model == here.model) CHECK(before.number + 1 == here.number);
    }
  }
}

TEST_CASE("model parts: ambiguous names, and duplicate parts") {
  const std::vector<PartFile> renamed = {{"renamed.gguf", {1, 3, ""}}};
  CHECK(missing_parts(named(renamed)).empty());
  CHECK(order_of_parts(named(renamed)).error().message.find("and part 2 is not here") != std::string::npos);
  const std::vector<PartFile> twice = {{"a.gguf", {1, 2, ""}}, {"b.gguf", {2, 2, ""}}, {"c.gguf", {1, 2, ""}}};
  CHECK(name_of(order_of_parts(named(twice)).error().code) == "file-invalid");
}
