#include "pipeline/forward/forward_use.h"

#include "core/message.h"

namespace wasmquant {
Status check_use(const model::Architecture& a, bool makes_embeddings, ForwardUse use) {
  if (a.routing.experts > 0 && use == ForwardUse::measure)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "choosing a spec for each layer is not implemented for mixtures of experts such as {q}; calibration "
        "of a given config, evaluate and generate are",
        a.family);
  if (a.is_encoder && use != ForwardUse::embed)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "of {q} the encoder is run, which predicts no next token: compare the embeddings of texts with those of the "
        "model that it was made from. Any config whose algorithms need no tokens quantizes it",
        a.family);
  if (!a.is_encoder && !makes_embeddings && use == ForwardUse::embed)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "{q} is no encoder, of which embeddings are compared, and has no modules.json of sentence-transformers; "
        "encoders are: {}",
        a.family, model::family_names(true));
  return {};
}

}  // namespace wasmquant
