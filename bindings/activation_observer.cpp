// Activation observers of a plan. Contract: BoundActivationObserver of web/lib/engine/forward_module.ts.
#include <emscripten/bind.h>

#include <memory>
#include <optional>
#include <string>

#include "forward_pass.h"
#include "marshal.h"
#include "pipeline/calibration/layer_inputs.h"
#include "tensor_input.h"

namespace wasmquant::bindings {
namespace {

class BoundActivationObserver : Counted {
 public:
  explicit BoundActivationObserver(std::string requests) {
    auto calibration = ActivationCalibration::create(requests);
    if (calibration) {
      inputs_.emplace(std::move(*calibration));
    } else {
      error_ = std::move(calibration.error());
    }
  }
  ~BoundActivationObserver() { leave(); }

  std::string second_pass() { return inputs_ ? ok(observers().needs_two_passes()) : fail(error_); }

  std::string begin(std::string layer, std::string role, std::string shape_text) {
    if (!inputs_) return fail(error_);
    const auto shape = read_shape(shape_text);
    if (!shape) return fail(shape.error());
    const Status begun = observers().begin(layer, activation_role_named(role), *shape);
    return begun ? ok(observers().is_wanted()) : fail(begun.error());
  }

  std::string update(Address values, std::string dtype, uint32_t count) {
    if (!inputs_) return fail(error_);
    const auto x = read_values(values, dtype, count);
    return x ? reply(observers().update(*x)) : fail(x.error());
  }

  std::string watch(const BoundForwardPass& pass) {
    if (!inputs_ || !pass.session()) return fail(inputs_ ? pass.session().error() : error_);
    leave();
    watched_ = *pass.session();
    watched_->set_sink(&*inputs_);
    return ok(nullptr);
  }

  std::string next_pass() {
    if (!inputs_) return fail(error_);
    if (is_second_ || observers().needs_two_passes().empty()) return ok(false);
    is_second_ = true;
    const Status begun = observers().next_pass();
    return begun ? ok(true) : fail(begun.error());
  }

  std::string finish() {
    if (!inputs_) return fail(error_);
    auto found = observers().finish();
    return found ? ok(std::move(*found)) : fail(found.error());
  }

 private:
  ActivationCalibration& observers() noexcept { return inputs_->calibration(); }
  void leave() noexcept {
    if (watched_) watched_->set_sink(nullptr);
  }

  std::optional<LayerInputs> inputs_;
  Error error_;
  std::shared_ptr<ForwardSession> watched_;
  bool is_second_ = false;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(activation_observer) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundActivationObserver>("ActivationObserver")
      .constructor<std::string>()
      .function("secondPass", &BoundActivationObserver::second_pass)
      .function("begin", &BoundActivationObserver::begin)
      .function("update", &BoundActivationObserver::update)
      .function("watch", &BoundActivationObserver::watch)
      .function("nextPass", &BoundActivationObserver::next_pass)
      .function("finish", &BoundActivationObserver::finish);
}
