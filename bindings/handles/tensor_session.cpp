#include "handles/tensor_session.h"

namespace wasmquant::bindings {

Made<BoundTensorSession> BoundTensorSession::make(const BoundWork& work, uint32_t number) {
  TRY(task, work.task(number));
  return std::unique_ptr<BoundTensorSession>(new BoundTensorSession(std::move(task)));
}

Made<BoundTensorDecoder> BoundTensorDecoder::make(const BoundWork& work, uint32_t number) {
  TRY(task, work.task(number));
  return std::unique_ptr<BoundTensorDecoder>(new BoundTensorDecoder(std::move(task)));
}

}  // namespace wasmquant::bindings
