// Registers the handles and the verbs of single tensors. Types and contracts: web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include "border/reply.h"
#include "handles/activation_observer.h"
#include "handles/calibration.h"
#include "handles/comparison.h"
#include "handles/observer.h"
#include "handles/plan.h"
#include "handles/tensor_session.h"
#include "tensors/tensor_verbs.h"

namespace wasmquant::bindings {
namespace {

/// `call` of a method or factory answers what JavaScript gets of its result.
template <auto Function>
struct Bound;
template <class T, class R, class... A, R (T::*Method)(A...)>
struct Bound<Method> {
  static auto call(T& self, A... given) { return reply((self.*Method)(std::forward<A>(given)...)); }
};
template <class T, class R, class... A, R (T::*Method)(A...) const>
struct Bound<Method> {
  static auto call(const T& self, A... given) { return reply((self.*Method)(std::forward<A>(given)...)); }
};
template <class T, class... A, Made<T> (*Factory)(A...)>
struct Bound<Factory> {
  static T* call(A... given) { return reply(Factory(std::forward<A>(given)...)); }
};
template <auto Function>
constexpr auto bound = &Bound<Function>::call;

std::string calibrated_algorithms(BoundConfig& config) {
  List<Diagnostic> diagnostics;
  const auto rows = config.calibrated_algorithms(diagnostics);
  return rows ? reply(*rows) : fail(rows.error(), diagnostics);
}

BoundPlan* make_plan(const BoundModelIndex& model, BoundConfig& config, const std::string& options, Address constants,
                     double constant_bytes, Address imatrix, double imatrix_bytes) {
  List<Diagnostic> diagnostics;
  auto made = BoundPlan::make(
      model, config, options,
      {values_at<uint8_t>(constants, constant_bytes), values_at<uint8_t>(imatrix, imatrix_bytes)}, diagnostics);
  return reply(std::move(made), diagnostics);
}

BoundObserver* make_observer(const std::string& spec) {
  List<Diagnostic> diagnostics;
  auto made = BoundObserver::make(spec, diagnostics);
  return reply(std::move(made), diagnostics);
}

template <class T>
Address reply_with(const Result<T>& result, const List<Diagnostic>& diagnostics) {
  if (result) return reply(result);
  keep(result.error(), diagnostics);
  return 0;
}

Address quantize(Address values, const std::string& dtype, const std::string& shape, const std::string& spec) {
  List<Diagnostic> diagnostics;
  return reply_with(quantize_tensor({values, dtype, shape, spec}, diagnostics), diagnostics);
}

Address fake_quantize(Address values, const std::string& dtype, const std::string& shape, const std::string& spec) {
  List<Diagnostic> diagnostics;
  return reply_with(fake_quantize_tensor({values, dtype, shape, spec}, diagnostics), diagnostics);
}

Address dequantize(Address codes, Address scale, Address zero_point, Address shifts, double second_scale,
                   const std::string& shape, const std::string& spec, const std::string& given) {
  List<Diagnostic> diagnostics;
  return reply_with(
      dequantize_tensor({codes, scale, zero_point, shifts, second_scale, shape, spec, given}, diagnostics),
      diagnostics);
}

Address error_between(Address x, Address y, double count) {
  const kernels::ErrorSums sums = kernels::error_between(values_at<float>(x, count), pointer<const float>(y));
  return reply(TileResult{{}, {&sums, 1}});
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(models_and_plans) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundModelIndex>("ModelIndex")
      .constructor<>()
      .function("addFile", &BoundModelIndex::add_file)
      .function("feed", bound<&BoundModelIndex::feed>)
      .function("readShardMap", bound<&BoundModelIndex::read_shard_map>)
      .function("missingParts", bound<&BoundModelIndex::missing_parts>)
      .function("finish", bound<&BoundModelIndex::finish>)
      .function("tensors", bound<&BoundModelIndex::tensors>)
      .function("metadataArray", bound<&BoundModelIndex::metadata_array>)
      .function("pretokenizer", bound<&BoundModelIndex::pretokenizer>)
      .function("sentenceModules", bound<&BoundModelIndex::sentence_modules>)
      .function("layerValues", bound<&BoundModelIndex::layer_values>)
      .function("addedOutputs", bound<&BoundModelIndex::added_outputs>)
      .function("setInlineBytes", bound<&BoundModelIndex::set_inline_bytes>)
      .function("stripPrefixes", &BoundModelIndex::strip_prefixes)
      .function("setSiblingFile", &BoundModelIndex::set_sibling_file)
      .function("readConfig", bound<&BoundModelIndex::read_config>);
  class_<BoundConfig>("Config").constructor<const std::string&>().function("calibratedAlgorithms",
                                                                           &calibrated_algorithms);
  class_<BoundPlan>("Plan")
      .class_function("make", &make_plan, allow_raw_pointers())
      .function("json", bound<&BoundPlan::to_json>)
      .function("tensors", bound<&BoundPlan::tensors>)
      .function("work", bound<&BoundPlan::work>)
      .function("pack", bound<&BoundPlan::pack>)
      .function("fileLiterals", bound<&BoundPlan::file_literals>)
      .function("literalBytes", bound<&BoundPlan::literal_bytes>)
      .function("activationRequests", &BoundPlan::activation_requests)
      .function("constants", bound<&BoundPlan::constants>)
      .function("importanceMatrix", bound<&BoundPlan::importance_matrix>)
      .function("shardMap", &BoundPlan::shard_map)
      .function("outputConfig", bound<&BoundPlan::output_config>);
  class_<BoundWork>("Work")
      .class_function("make", bound<&BoundWork::make>, allow_raw_pointers())
      .function("identity", bound<&BoundWork::identity>)
      .function("copies", bound<&BoundWork::copies>);
  class_<BoundComparison>("Comparison")
      .class_function("make", bound<&BoundComparison::make>, allow_raw_pointers())
      .function("summary", bound<&BoundComparison::summary>)
      .function("pairs", bound<&BoundComparison::pairs>)
      .function("pack", bound<&BoundComparison::pack>);
}

EMSCRIPTEN_BINDINGS(tensors) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundTensorSession>("TensorSession")
      .class_function("make", bound<&BoundTensorSession::make>, allow_raw_pointers())
      .function("observePasses", &BoundTensorSession::observe_passes)
      .function("reads", bound<&BoundTensorSession::reads>)
      .function("observe", bound<&BoundTensorSession::observe>)
      .function("state", bound<&BoundTensorSession::state>)
      .function("nextPass", bound<&BoundTensorSession::next_pass>)
      .function("takeState", bound<&BoundTensorSession::take_state>)
      .function("run", bound<&BoundTensorSession::run>);
  class_<BoundTensorDecoder>("TensorDecoder")
      .class_function("make", bound<&BoundTensorDecoder::make>, allow_raw_pointers())
      .function("reads", bound<&BoundTensorDecoder::reads>)
      .function("decode", bound<&BoundTensorDecoder::decode>);
  class_<BoundObserver>("Observer")
      .class_function("make", &make_observer, allow_raw_pointers())
      .function("update", bound<&BoundObserver::update>)
      .function("passes", &BoundObserver::passes)
      .function("nextPass", bound<&BoundObserver::next_pass>)
      .function("finish", bound<&BoundObserver::finish>)
      .function("merge", bound<&BoundObserver::merge>)
      .function("reset", &BoundObserver::reset);
  function("quantizeTensor", &quantize);
  function("fakeQuantizeTensor", &fake_quantize);
  function("dequantizeTensor", &dequantize);
  function("errorBetween", &error_between);
}

EMSCRIPTEN_BINDINGS(passes) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundActivationObserver>("ActivationObserver")
      .class_function("make", bound<&BoundActivationObserver::make>, allow_raw_pointers())
      .function("secondPass", &BoundActivationObserver::second_pass)
      .function("begin", bound<&BoundActivationObserver::begin>)
      .function("update", bound<&BoundActivationObserver::update>)
      .function("watch", &BoundActivationObserver::watch)
      .function("nextPass", bound<&BoundActivationObserver::next_pass>)
      .function("finish", bound<&BoundActivationObserver::finish>);
  class_<BoundForwardPass>("ForwardPass")
      .class_function("make", bound<&BoundForwardPass::make>, allow_raw_pointers())
      .function("portions", &BoundForwardPass::portions)
      .function("begin", bound<&BoundForwardPass::begin>)
      .function("reads", bound<&BoundForwardPass::reads>)
      .function("load", bound<&BoundForwardPass::load>)
      .function("replace", bound<&BoundForwardPass::replace>)
      .function("run", bound<&BoundForwardPass::run>)
      .function("needs", bound<&BoundForwardPass::needs>)
      .function("keep", bound<&BoundForwardPass::keep>)
      .function("runKept", bound<&BoundForwardPass::run_kept>)
      .function("extend", bound<&BoundForwardPass::extend>)
      .function("losses", bound<&BoundForwardPass::losses>)
      .function("embeddings", bound<&BoundForwardPass::embeddings>)
      .function("nextToken", &BoundForwardPass::next_token);
  class_<BoundDivergence>("Divergence")
      .class_function("make", bound<&BoundDivergence::make>, allow_raw_pointers())
      .function("behind", bound<&BoundDivergence::behind>)
      .function("run", bound<&BoundDivergence::run>)
      .function("positions", bound<&BoundDivergence::positions>);
  class_<BoundSensitivityProbe>("SensitivityProbe")
      .constructor<const BoundForwardPass&>()
      .function("run", bound<&BoundSensitivityProbe::run>)
      .function("measure", bound<&BoundSensitivityProbe::measure>);
  class_<BoundCalibration>("Calibration").class_function("make", bound<&BoundCalibration::make>, allow_raw_pointers());
  class_<BoundBlockCalibrator>("BlockCalibrator")
      .class_function("make", bound<&BoundBlockCalibrator::make>, allow_raw_pointers())
      .function("parts", bound<&BoundBlockCalibrator::parts>)
      .function("record", bound<&BoundBlockCalibrator::record>)
      .function("expect", bound<&BoundBlockCalibrator::expect>)
      .function("show", bound<&BoundBlockCalibrator::show>)
      .function("sums", bound<&BoundBlockCalibrator::sums>)
      .function("optimize", bound<&BoundBlockCalibrator::optimize>)
      .function("results", bound<&BoundBlockCalibrator::results>)
      .function("store", bound<&BoundBlockCalibrator::store>)
      .function("evidence", bound<&BoundBlockCalibrator::evidence>);
  class_<BoundEmbeddingRotation>("EmbeddingRotation")
      .class_function("make", bound<&BoundEmbeddingRotation::make>, allow_raw_pointers())
      .function("store", bound<&BoundEmbeddingRotation::store>);
}
