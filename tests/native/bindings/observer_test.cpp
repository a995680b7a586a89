// BoundObserver: batches in pieces, merged observers, two passes.
#include "handles/observer.h"

#include <cmath>

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

const std::string kMinMax = R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})";
const std::string kTwice =
    R"({"dtype": "int8", "qscheme": "per_tensor", "observer_cls": "PerTensorPercentileObserver"})";

std::unique_ptr<BoundObserver> observer_of(const std::string& spec) {
  List<Diagnostic> diagnostics;
  return taken(BoundObserver::make(spec, diagnostics));
}

Status sees(BoundObserver& observer, const std::vector<float>& x, const std::string& shape, double at = 0,
            double batch = -1, const std::string& dtype = "F32") {
  return observer.update(address_of(x), dtype, static_cast<double>(x.size()), at, shape, batch);
}

TEST_CASE("BoundObserver: ranges and scales of each channel, from batches or their pieces") {
  const auto whole = observer_of(kMinMax), pieces = observer_of(kMinMax);
  CHECK(whole->passes() == 1);
  CHECK(refusal(sees(*whole, {-1, 0, 4, 0, 1, 2}, "[2, 3]")) == "");
  CHECK(refusal(sees(*pieces, {0, 1, 2}, "[2, 3]", 3, 7)) == "");
  CHECK(refusal(sees(*pieces, {-1, 0, 4}, "[2, 3]", 0, 7)) == "");
  for (BoundObserver* const observer : {whole.get(), pieces.get()}) {
    const Parts found = taken(observer->finish());
    CHECK(found.facts["zeroPointType"].as_string() == "int32");
    CHECK(values_in<float>(part_of(found, "min")) == std::vector<float>{-1, 0});
    CHECK(values_in<float>(part_of(found, "max")) == std::vector<float>{4, 2});
    CHECK(values_in<float>(part_of(found, "scale")) == std::vector<float>{5.0f / 255, 2.0f / 255});
    CHECK(values_in<float>(part_of(found, "zeroPoint")) == std::vector<float>{51, 0});
  }
  whole->reset();
  CHECK(refusal(sees(*whole, {0, 1}, "[2, 1]")) == "");
  CHECK(values_in<float>(part_of(taken(whole->finish()), "max")) == std::vector<float>{0, 1});
  const auto floats = observer_of(R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor"})");
  CHECK(refusal(sees(*floats, {448, -1}, "[2]")) == "");
  const Parts found = taken(floats->finish());
  CHECK(values_in<float>(part_of(found, "scale")) == std::vector<float>{1});
  for (const std::string_view name : found.names) CHECK(name != "zeroPoint");
}

TEST_CASE("BoundObserver: refuses specs and batches") {
  List<Diagnostic> diagnostics;
  CHECK(refusal(BoundObserver::make("{", diagnostics)).substr(0, 12) == "json-invalid");
  CHECK(refusal(BoundObserver::make(R"({"dtype": "int99"})", diagnostics)).substr(0, 19) == "spec-invalid /dtype");
  CHECK(diagnostics.size() == 1);
  CHECK(refusal(BoundObserver::make("[" + kMinMax + "]", diagnostics)) ==
        "spec-invalid : a list of specs has 2 stages, found 1");
  const auto observer = observer_of(kMinMax);
  CHECK(refusal(sees(*observer, {1, 2}, "[2.5]")) ==
        "argument-invalid shape: found [2.5]; dimensions are whole numbers, 0 or more");
  CHECK(refusal(sees(*observer, {1, 2}, "[65536, 65537]")) ==
        "shape-mismatch shape: [65536,65537] has more elements than memory can hold");
  CHECK(refusal(sees(*observer, {1, 2}, "[")).substr(0, 12) == "json-invalid");
  CHECK(refusal(sees(*observer, {1, 2}, "[2, 1]", 0, -1, "I8")) ==
        "dtype-unsupported dtype: found \"I8\"; it must be F32, F16 or BF16");
  CHECK(refusal(sees(*observer, {1, 2}, "[2, 2]")) ==
        "shape-mismatch data: has 2 elements from 0 on, but the batch has 4");
  CHECK(refusal(sees(*observer, {1, 2}, "[2, 2]", 3, 0)) ==
        "shape-mismatch data: has 2 elements from 3 on, but the batch has 4");
  CHECK(refusal(sees(*observer, {1, std::nanf("")}, "[2, 2]", 2, 0)) ==
        "value-not-finite : element 3 is NaN or infinite");
  CHECK(refusal(sees(*observer, {1, 2}, "[2, 1]", 0, 0)) == "");
  const std::string mixed =
      "argument-invalid batch: is given for some batches and not for others; number all batches of these observers, or "
      "none";
  CHECK(refusal(sees(*observer, {1, 2}, "[2, 1]")) == mixed);
  const auto counted = observer_of(kMinMax);
  CHECK(refusal(sees(*counted, {1, 2}, "[2, 1]")) == "");
  CHECK(refusal(counted->merge(*observer)) == mixed);
  CHECK(refusal(counted->merge(*observer_of(kTwice))) ==
        "state-invalid : observers of different specs or in different passes cannot be merged");
  CHECK(refusal(counted->next_pass()) == "state-invalid : the observer has already seen all of its data");
}

TEST_CASE("BoundObserver: a second pass sees the batches of the first, also those that were merged") {
  const std::vector<float> x{1, -2, 3, -4}, y{5, -6, 7, -8};
  const auto one = observer_of(kTwice), other = observer_of(kTwice), alone = observer_of(kTwice);
  CHECK(one->passes() == 2);
  CHECK(refusal(sees(*one, x, "[4]")) == "");
  CHECK(refusal(sees(*other, y, "[4]")) == "");
  CHECK(refusal(one->finish()) ==
        "state-invalid : this observer reads the data twice: first for its range, then for its distribution");
  CHECK(refusal(one->merge(*other)) == "");
  for (const auto& values : {x, y}) CHECK(refusal(sees(*alone, values, "[4]")) == "");
  for (BoundObserver* const observer : {one.get(), alone.get()}) {
    CHECK(refusal(observer->next_pass()) == "");
    for (const auto& values : {x, y}) CHECK(refusal(sees(*observer, values, "[4]")) == "");
    CHECK(refusal(sees(*observer, x, "[4]")) == "state-invalid : batch 2 was not part of the first pass");
  }
  const auto scale = values_in<float>(part_of(taken(one->finish()), "scale"));
  CHECK(scale == values_in<float>(part_of(taken(alone->finish()), "scale")));
  CHECK(scale[0] > 0);
}

}  // namespace
}  // namespace wasmquant::testing
