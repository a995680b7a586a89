// Contract: BoundSensitivityProbe of web/lib/engine/forward_module.ts.
#include <emscripten/bind.h>

#include <optional>
#include <string>

#include "forward_pass.h"
#include "marshal.h"
#include "pipeline/calibration/block_sensitivity.h"

namespace wasmquant::bindings {
namespace {

class BoundSensitivityProbe : Counted {
 public:
  explicit BoundSensitivityProbe(const BoundForwardPass& pass) {
    if (!pass.session()) {
      error_ = pass.session().error();
      return;
    }
    session_ = *pass.session();
    sensitivity_.emplace(session_->pass().block());
  }

  std::string run(uint32_t portion) {
    if (!sensitivity_) return fail(error_);
    session_->set_sink(&*sensitivity_);
    const Status status = session_->run(portion);
    session_->set_sink(nullptr);
    return reply(status);
  }

  std::string measure(uint32_t slot, const BoundWork& work, uint32_t number) {
    if (!sensitivity_) return fail(error_);
    if (!is_finished_)
      if (const Status finished = sensitivity_->finish(session_->pass().stream_energy()); !finished)
        return fail(finished.error());
    is_finished_ = true;
    const auto task = work.task(number);
    if (!task) return fail(task.error());
    const auto measured = sensitivity_->measure(static_cast<model::Slot>(slot), *task);
    return measured ? ok(*measured) : fail(measured.error());
  }

 private:
  std::shared_ptr<ForwardSession> session_;
  std::optional<BlockSensitivity> sensitivity_;
  Error error_;
  bool is_finished_ = false;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(sensitivity_probe) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundSensitivityProbe>("SensitivityProbe")
      .constructor<const BoundForwardPass&>()
      .function("run", &BoundSensitivityProbe::run)
      .function("measure", &BoundSensitivityProbe::measure);
}
