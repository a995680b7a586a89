// One tensor, observed, quantized and packed tile by tile. Contract: BoundTensorSession of web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <optional>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "pipeline/task/session.h"
#include "tile_json.h"
#include "work.h"

namespace wasmquant::bindings {
namespace {

class BoundTensorSession : Counted {
 public:
  BoundTensorSession(const BoundWork& work, uint32_t number) {
    auto task = work.task(number);
    if (task) {
      session_.emplace(std::move(*task));
    } else {
      error_ = std::move(task.error());
    }
  }

  std::string observe_passes() const {
    return session_ ? ok(static_cast<int64_t>(session_->observe_passes())) : fail(error_);
  }

  std::string reads(uint32_t tile) { return session_ ? ok(reads_json(session_->reads(tile))) : fail(error_); }

  std::string observe(uint32_t tile) { return session_ ? reply(session_->observe(tile)) : fail(error_); }

  std::string state() {
    if (!session_) return fail(error_);
    const auto state = session_->state();
    if (!state) return fail(state.error());
    json::Value out;
    out.set("pointer", address(state->data()));
    out.set("bytes", static_cast<uint64_t>(state->size_bytes()));
    return ok(std::move(out));
  }

  std::string next_pass() { return session_ ? reply(session_->next_pass()) : fail(error_); }

  std::string take_state(Address state, uint32_t bytes) {
    if (!session_) return fail(error_);
    return reply(session_->take_state({pointer<const float>(state), bytes / sizeof(float)}));
  }

  std::string run(uint32_t tile) {
    if (!session_) return fail(error_);
    const auto result = session_->run(tile);
    if (!result) return fail(result.error());
    return ok(writes_json({result->writes.data(), result->writes.size()}, result->sums, sums_));
  }

 private:
  std::optional<TensorSession> session_;
  Error error_;
  List<double> sums_;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(tensor_session) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundTensorSession>("TensorSession")
      .constructor<const BoundWork&, uint32_t>()
      .function("observePasses", &BoundTensorSession::observe_passes)
      .function("reads", &BoundTensorSession::reads)
      .function("observe", &BoundTensorSession::observe)
      .function("state", &BoundTensorSession::state)
      .function("nextPass", &BoundTensorSession::next_pass)
      .function("takeState", &BoundTensorSession::take_state)
      .function("run", &BoundTensorSession::run);
}
