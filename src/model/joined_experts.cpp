#include "model/joined_experts.h"

#include <cmath>
#include <utility>

#include "model/steps/norm.h"

namespace wasmquant::model {
namespace {

Norm norm_of(const Architecture& a) noexcept { return {a.norms.epsilon, a.norms.plus_one, a.norms.subtract_mean}; }

}  // namespace

std::vector<float> router_input(const Architecture& a, const BlockValues& weights, std::span<const float> x) {
  std::vector<float> out(x.size());
  normalize({a.norms.epsilon}, {}, {}, x.data(), x.size() / a.hidden, a.hidden, out.data());
  const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(a.hidden)));
  const std::vector<float>& scale = weights[Slot::router_scale];
  for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] * scale[i % a.hidden] * root;
  return out;
}

void begin_joined(const Architecture& a, const BlockValues& weights, std::span<const float> x, std::vector<float> dense,
                  Routed& routed) {
  const size_t tokens = x.size() / a.hidden;
  routed.input.resize(x.size());
  normalize(norm_of(a), weights[Slot::experts_norm], {}, x.data(), tokens, a.hidden, routed.input.data());
  for (size_t i = 0; i < routed.experts.size(); ++i)
    routed.weights[i] *= weights[Slot::expert_scales][routed.experts[i]];
  JoinedExperts& joined = routed.joined;
  normalize(norm_of(a), weights[Slot::dense_post_norm], {}, dense.data(), tokens, a.hidden, dense.data());
  joined.dense = std::move(dense);
  joined.sum.assign(x.size(), 0.0f);
  joined.sum_norm = weights[Slot::experts_post_norm];
  joined.norm = weights[Slot::feed_forward_post_norm];
  joined.scale = weights[Slot::layer_scale].empty() ? 1 : weights[Slot::layer_scale][0];
}

void finish_joined(const Architecture& a, JoinedExperts& joined, std::span<float> x) {
  std::vector<float>&sum = joined.sum, &dense = joined.dense;
  const size_t tokens = x.size() / a.hidden;
  normalize(norm_of(a), joined.sum_norm, {}, sum.data(), tokens, a.hidden, sum.data());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += dense[i];
  normalize(norm_of(a), joined.norm, {}, sum.data(), tokens, a.hidden, sum.data());
  for (size_t i = 0; i < x.size(); ++i) x[i] = (x[i] + sum[i]) * joined.scale;
  joined = {};
}

}  // namespace wasmquant::model
