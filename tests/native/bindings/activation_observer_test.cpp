// BoundActivationObserver: batches of layers, or the inputs of a pass that is watched.
#include "handles/activation_observer.h"

#include <cmath>

#include "bindings/bound_pass.h"

namespace wasmquant::testing {
namespace {

std::string static_inputs(const std::string& observer) {
  return R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}, "input_tensors":
    {"dtype": "uint8", "qscheme": "per_tensor", "symmetric": false, "is_dynamic": false, "observer_cls": ")" +
         observer + R"("}}, "exclude": ["lm_head"]})";
}

std::string requests_of(const BoundModel& model, const std::string& observer) {
  return taken(plan_made(*model.index, static_inputs(observer), R"({"format": "quark", "calibrates": true})"))
      ->activation_requests();
}

Status sees(BoundActivationObserver& observer, const std::string& layer, const std::vector<float>& x,
            const std::string& shape) {
  const auto begun = observer.begin(layer, "input", shape);
  if (!begun) return begun.error();
  if (!*begun) return {};
  return observer.update(address_of(x), "F32", static_cast<double>(x.size()));
}

TEST_CASE("BoundActivationObserver: scales of batches in one pass and in two") {
  const BoundModel model = small_model();
  const std::vector<float> x(64, 0.5f), y(128, 1.0f);
  for (const bool is_twice : {false, true}) {
    const std::string name = is_twice ? "PerTensorPercentileObserver" : "PerTensorMinMaxObserver";
    const auto observer = taken(BoundActivationObserver::make(requests_of(model, name)));
    CHECK(observer->second_pass() == (is_twice ? name + " of a.up_proj.input" : ""));
    CHECK(taken(observer->begin("a.norm", "input", "[2, 32]")) == false);
    for (int pass = 0; pass < 2; ++pass) {
      CHECK(refusal(sees(*observer, "a.up_proj", x, "[2, 32]")) == "");
      CHECK(refusal(sees(*observer, "a.down_proj", y, "[2, 64]")) == "");
      const bool again = taken(observer->next_pass());
      CHECK(again == (is_twice && pass == 0));
      if (!again) break;
    }
    const json::Value found = taken(observer->finish());
    REQUIRE(found["found"].items().size() == 2);
    CHECK(found["unused"].as_integer() == (is_twice ? 0 : 1));  // of the last pass
  }
}

TEST_CASE("BoundActivationObserver: refuses requests and batches, and says which layer") {
  CHECK(refusal(BoundActivationObserver::make("{")).substr(0, 12) == "json-invalid");
  const BoundModel model = small_model();
  const auto observer = taken(BoundActivationObserver::make(requests_of(model, "PerTensorMinMaxObserver")));
  CHECK(refusal(observer->begin("a.up_proj", "input", "[-1]")) ==
        "argument-invalid shape: found [-1]; dimensions are whole numbers, 0 or more");
  CHECK(refusal(observer->begin("a.up_proj", "input", "[2, 31]")) ==
        "shape-mismatch a.up_proj.input: batch 0 has 31 features, but the layer has 32");
  REQUIRE(taken(observer->begin("a.up_proj", "input", "[1, 32]")));
  std::vector<float> x(33, 1.0f);
  CHECK(refusal(observer->update(address_of(x), "F32", 33)) ==
        "shape-mismatch a.up_proj.input: its shape has 32 elements, the data 33");
  CHECK(refusal(observer->update(address_of(x), "F64", 33)) ==
        "dtype-unsupported dtype: found \"F64\"; it must be F32, F16 or BF16");
  x[3] = INFINITY;
  CHECK(refusal(observer->update(address_of(x), "F32", 32)) ==
        "value-not-finite a.up_proj.input: element 3 of batch 0 is NaN or infinite");
  const auto none = taken(BoundActivationObserver::make(requests_of(model, "PerTensorMinMaxObserver")));
  CHECK(refusal(none->finish()) ==
        "argument-invalid calibration: there is no data for a.up_proj.input, a.down_proj.input; give it, exclude these "
        "layers, or set is_dynamic");
}

TEST_CASE("BoundActivationObserver: watches the inputs of one pass after another") {
  BoundPass first, second("files/forward/llama", R"({"lengths": [16, 16]})", tokens_of_pass(5));
  const std::string requests = requests_of(first.model, "PerTensorMinMaxObserver");
  const auto scales = [&](std::initializer_list<BoundPass*> passes) {
    const auto observer = taken(BoundActivationObserver::make(requests));
    for (BoundPass* const pass : passes) {
      observer->watch(*pass->pass);
      pass->steps(0, static_cast<uint32_t>(pass->plan.steps.size()) - 1);
    }
    const json::Value found = taken(observer->finish());
    CHECK(found["found"].items().size() == 3 * 7);
    return json::write(found["found"]);
  };
  const std::string one = scales({&first}), both = scales({&first, &second});
  CHECK(one != both);
  CHECK(scales({&second, &first}) == both);  // ranges of both, in any order
  first.steps(0, 2);                         // nobody watches it any more
}

}  // namespace
}  // namespace wasmquant::testing
