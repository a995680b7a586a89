// Static scales of inputs and outputs: what a plan asks for, what observers make of batches, and where it is stored.
#include "pipeline/calibration/activation_calibration.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "pipeline/memory_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

std::vector<float> activations(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.3f, 2.0f);
  std::vector<float> x(count);
  for (float& v : x) v = normal(random);
  return x;
}

MemoryModel two_layers() {
  MemoryModel model;
  model.add_file("model.safetensors", {{"a.up_proj.weight", StorageDtype::BF16, {6, 5}, activations(30, 1)},
                                       {"a.down_proj.weight", StorageDtype::BF16, {5, 6}, activations(30, 2)},
                                       {"a.norm.weight", StorageDtype::BF16, {5}, activations(5, 3)},
                                       {"a.odd", StorageDtype::BF16, {3}, activations(3, 4)}});
  return model;
}

std::string config_text(const std::string& observer, const std::string& role = "input_tensors") {
  return R"({"global_quant_config":{"weight":{"dtype":"int8","qscheme":"per_channel","ch_axis":0},")" + role +
         R"(":{"dtype":"uint8","qscheme":"per_tensor","symmetric":false,"is_dynamic":false,"observer_cls":")" +
         observer + R"("}}})";
}

ActivationCalibration calibration_of(const Plan& plan) {
  auto made = ActivationCalibration::create(write_requests(plan.requests));
  REQUIRE(bool(made));
  return std::move(*made);
}

Plan activation_calibration_plan_of(const ModelIndex& index, const std::string& config, PlanOptions options) {
  options.calibrates = true;
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, config, options, diagnostics);
  REQUIRE(bool(plan));
  return std::move(*plan);
}

Status show(ActivationCalibration& calibration, const std::string& layer, std::span<const float> x, uint64_t columns,
            size_t piece) {
  TRY_VOID(calibration.begin(layer, ActivationRole::input, {x.size() / columns, columns}));
  for (size_t at = 0; at < x.size(); at += piece)
    TRY_VOID(calibration.update(x.subspan(at, std::min(piece, x.size() - at))));
  return {};
}

// All passes, in batches of so many rows and pieces of so many elements.
std::string found_by(const Plan& plan, size_t batch_rows, size_t piece) {
  const std::vector<float> up = activations(60, 5), down = activations(72, 6);
  ActivationCalibration calibration = calibration_of(plan);
  const uint32_t passes = calibration.needs_two_passes().empty() ? 1 : 2;
  for (uint32_t pass = 1; pass <= passes; ++pass) {
    if (pass > 1) REQUIRE(bool(calibration.next_pass()));
    for (size_t row = 0; row < 12; row += batch_rows) {
      const size_t rows = std::min<size_t>(batch_rows, 12 - row);
      REQUIRE(bool(show(calibration, "a.up_proj", std::span(up).subspan(row * 5, rows * 5), 5, piece)));
      REQUIRE(bool(show(calibration, "a.down_proj", std::span(down).subspan(row * 6, rows * 6), 6, piece)));
    }
  }
  auto found = calibration.finish();
  REQUIRE(bool(found));
  return json::write(*found);
}

std::string refusal(const Status& status) { return status ? "" : status.error().where; }

}  // namespace

TEST_CASE("static scales do not depend on the split into batches and pieces") {
  const ModelIndex index = two_layers().index();
  for (const ObserverInfo& observer : kObservers) {
    const bool is_by_batch =
        observer.method == ObserverMethod::last_range || observer.method == ObserverMethod::moving_range ||
        observer.method == ObserverMethod::mean_percentile || observer.method == ObserverMethod::mean_max ||
        observer.method == ObserverMethod::threshold_mse || observer.method == ObserverMethod::mean_threshold_mse ||
        observer.method == ObserverMethod::range_mse || observer.method == ObserverMethod::range_cross_entropy ||
        observer.method == ObserverMethod::pow2_min_mse || observer.method == ObserverMethod::pow2_min_max;
    if (observer.qscheme != QScheme::per_tensor || !observer.serves(info_of(Dtype::uint8))) continue;
    CAPTURE(std::string(observer.name));
    const Plan plan = activation_calibration_plan_of(index, config_text(std::string(observer.name)), {});
    REQUIRE(plan.requests.size() == 2);
    const std::string whole = found_by(plan, 12, 1000);
    for (const size_t piece : {1u, 7u, 64u}) CHECK(found_by(plan, 12, piece) == whole);
    if (is_by_batch) continue;
    for (const size_t rows : {1u, 5u, 6u}) CHECK(found_by(plan, rows, 4) == whole);
  }
}

TEST_CASE("the scales found are in the file, aligned, and in the config block") {
  const MemoryModel model = two_layers();
  const ModelIndex index = model.index();
  for (const char* const format : {"compressed-tensors", "quark"}) {
    CAPTURE(std::string(format));
    PlanOptions options;
    options.format = format;
    const std::string config = config_text("PerTensorMinMaxObserver");
    const Plan asked = activation_calibration_plan_of(index, config, options);
    CHECK(asked.files.front().prefix.empty());
    auto found = json::parse(found_by(asked, 4, 3));
    REQUIRE(bool(found));
    options.activations = (*found)["found"];
    const Plan plan = activation_calibration_plan_of(index, config, options);
    // Every byte is somebody's: a literal, or a component of a task.
    CHECK(plan.files.front().prefix.size() > 0);
    uint64_t bytes = 0;
    for (const Literal& literal : plan.files.front().literals) bytes += literal.bytes;
    CHECK(bytes == plan.files.front().prefix.size());
    bytes += plan.files.front().header.bytes;
    size_t stored = 0;
    for (const PlannedTensor& planned : plan.tensors) {
      for (const Component& component : planned.outputs()) bytes += is_known(component.role) ? 0 : component.bytes;
      stored += planned.activations.size();
    }
    CHECK(bytes == plan.files.front().bytes);
    CHECK(stored == 4);
    const bool is_quark = std::string_view(format) == "quark";
    for (const PlannedTensor& planned : plan.tensors) {
      if (planned.activations.size() != 2) continue;
      const ConstantTensor &scale = planned.activations[0], &zero_point = planned.activations[1];
      CHECK(scale.component.name_part == planned.weight.layer + ".input_scale");
      CHECK(scale.component.dtype == (is_quark ? StorageDtype::F32 : StorageDtype::BF16));
      CHECK(zero_point.component.dtype == (is_quark ? StorageDtype::U8 : StorageDtype::I8));
      CHECK(scale.component.shape == (is_quark ? std::vector<uint64_t>{} : std::vector<uint64_t>{1}));
    }
    const std::string block = json::write(plan.quantization_config);
    CHECK(block.find(is_quark
                         ? R"("input_tensors":{"dtype":"uint8","is_dynamic":false)"
                         : R"("input_activations":{"num_bits":8,"type":"int","symmetric":false,"strategy":"tensor")") !=
          std::string::npos);
  }
}

TEST_CASE("data that does not fit names its layer") {
  const ModelIndex index = two_layers().index();
  const Plan plan = activation_calibration_plan_of(index, config_text("PerTensorPercentileObserver"), {});
  ActivationCalibration calibration = calibration_of(plan);
  CHECK(calibration.needs_two_passes() == "PerTensorPercentileObserver of a.up_proj.input");
  const std::vector<float> x = activations(10, 7);
  CHECK(refusal(show(calibration, "a.up", x, 5, 10)).empty());
  CHECK(refusal(show(calibration, "a.norm", x, 5, 10)).empty());
  CHECK_FALSE(calibration.is_wanted());
  CHECK(refusal(calibration.begin("a.up_proj", ActivationRole::output, {2, 6})).empty());
  CHECK_FALSE(calibration.is_wanted());
  CHECK(refusal(show(calibration, "a.up_proj", x, 2, 10)) == "a.up_proj.input");
  CHECK(refusal(calibration.begin("a.up_proj", ActivationRole::input, {0, 5})) == "a.up_proj.input");
  CHECK(refusal(calibration.begin("a.up_proj", ActivationRole::input, {})) == "a.up_proj.input");
  constexpr uint64_t kHuge = uint64_t{1} << 40;
  CHECK(refusal(calibration.begin("a.up_proj", ActivationRole::input, {kHuge, kHuge, 5})) == "a.up_proj.input");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> y = x;
    y[7] = bad;
    ActivationCalibration other = calibration_of(plan);
    const Status shown = show(other, "a.up_proj", y, 5, 4);
    REQUIRE_FALSE(bool(shown));
    CHECK(shown.error().code == ErrorCode::value_not_finite);
    CHECK(shown.error().message.find("element 7 of batch 0") != std::string::npos);
  }
  REQUIRE(bool(calibration.begin("a.up_proj", ActivationRole::input, {2, 5})));
  CHECK(refusal(calibration.update(activations(11, 8))) == "a.up_proj.input");
  REQUIRE(bool(calibration.update(std::span(x).first(9))));
  CHECK(refusal(calibration.next_pass()) == "a.up_proj.input");
  REQUIRE(bool(calibration.update(std::span(x).last(1))));
  CHECK_FALSE(bool(calibration.finish()));
  REQUIRE(bool(calibration.next_pass()));
  CHECK(refusal(calibration.next_pass()) == "calibration");
  const auto missing = calibration.finish();
  REQUIRE_FALSE(bool(missing));
  CHECK(missing.error().where == "a.up_proj.input");  // nothing in the second pass
  REQUIRE(bool(show(calibration, "a.up_proj", x, 5, 10)));
  const auto none = calibration.finish();
  REQUIRE_FALSE(bool(none));
  CHECK(none.error().message.find("a.down_proj.input") != std::string::npos);
  CHECK(none.error().message.find("a.up_proj.input") == std::string::npos);
}

TEST_CASE("importance is the mean square of each input channel, and weighs what a search minimises") {
  const MemoryModel model = two_layers();
  const ModelIndex index = model.index();
  const std::string config =
      R"({"global_quant_config":{"weight":{"dtype":"int4","qscheme":"per_channel","ch_axis":0,"observer_cls":)"
      R"("PerChannelMSEObserver","observer_options":{"weighted":true}}},"exclude":["a.down_proj"]})";
  PlanOptions options;
  options.format = "fake-quantized";
  const Plan asked = activation_calibration_plan_of(index, config, options);
  REQUIRE(asked.requests.size() == 1);
  CHECK(asked.requests.front().importance);
  CHECK_FALSE(bool(asked.requests.front().spec));
  ActivationCalibration calibration = calibration_of(asked);
  std::vector<float> x = activations(60, 9);
  for (size_t i = 2; i < x.size(); i += 5) x[i] *= 20;
  REQUIRE(bool(show(calibration, "a.up_proj", std::span(x).first(25), 5, 3)));
  REQUIRE(bool(show(calibration, "a.up_proj", std::span(x).subspan(25), 5, 100)));
  auto found = calibration.finish();
  REQUIRE(bool(found));
  const std::vector<float> importance = importance_in((*found)["found"].items().front());
  REQUIRE(importance.size() == 5);
  for (size_t c = 0; c < 5; ++c) {
    double sum = 0;
    for (size_t row = 0; row < 12; ++row) sum += double{x[row * 5 + c]} * double{x[row * 5 + c]};
    CHECK(importance[c] == static_cast<float>(sum) / 12);
  }
  options.activations = (*found)["found"];
  const Plan plan = activation_calibration_plan_of(index, config, options);
  for (const PlannedTensor& planned : plan.tensors) {
    const bool is_weighted = planned.weight.layer == "a.up_proj";
    CHECK(planned.task.importance.size() == (is_weighted ? 5 : 0));
    CHECK(in_worker(planned.task).importance == planned.task.importance);
  }
}
