// An observer owned by JavaScript. Contract: Observer of web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <memory>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "observers/registry.h"
#include "tensor_input.h"

namespace wasmquant::bindings {
namespace {

/// With an invalid spec, every call returns the error.
class BoundObserver : Counted {
 public:
  explicit BoundObserver(std::string spec_text) {
    auto spec = read_spec(spec_text, diagnostics_);
    if (spec) {
      observer_ = make_observer(*spec);
    } else {
      error_ = spec.error();
    }
  }

  std::string update(Address values, std::string dtype, std::string shape_text) {
    if (!observer_) return fail(error_, diagnostics_);
    auto shape = read_shape(shape_text);
    if (!shape) return fail(shape.error());
    auto x = read_values(values, dtype, count_of(*shape));
    if (!x) return fail(x.error());
    const Status status = observe(*observer_, batch_, *x, *shape);
    if (status) ++batch_;
    return reply(status);
  }

  /// Required passes over the data; 1 if the spec is invalid.
  uint32_t passes() const noexcept { return observer_ ? observer_->passes() : 1; }
  std::string next_pass() {
    if (!observer_) return fail(error_, diagnostics_);
    batch_ = 0;
    return reply(observer_->next_pass());
  }

  std::string finish() {
    if (!observer_) return fail(error_, diagnostics_);
    auto found = observer_->finish();
    if (!found) return fail(found.error());
    const Granularity& g = found->granularity;
    TensorWork& w = work();
    w.min.resize(found->min.size());
    w.max.resize(found->max.size());
    to_scale_shape_order(g, found->min.data(), w.min.data());
    to_scale_shape_order(g, found->max.data(), w.max.data());
    json::Value out;
    out.set("count", static_cast<uint64_t>(found->qparams.size()));
    set_qparams(out, g, observer_->spec(), found->qparams);
    out.set("min", address(w.min.data()));
    out.set("max", address(w.max.data()));
    return ok(std::move(out));
  }

  std::string merge(BoundObserver& other) {
    if (!observer_) return fail(error_, diagnostics_);
    if (!other.observer_) return fail(other.error_, other.diagnostics_);
    return reply(observer_->merge(*other.observer_));
  }

  void reset() {
    batch_ = 0;
    if (observer_) observer_->reset();
  }

 private:
  std::unique_ptr<Observer> observer_;
  uint64_t batch_ = 0;  // the next one of this pass
  Error error_;
  List<Diagnostic> diagnostics_;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(observer) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundObserver>("Observer")
      .constructor<std::string>()
      .function("update", &BoundObserver::update)
      .function("passes", &BoundObserver::passes)
      .function("nextPass", &BoundObserver::next_pass)
      .function("finish", &BoundObserver::finish)
      .function("merge", &BoundObserver::merge)
      .function("reset", &BoundObserver::reset);
}
