#include "model/experts/routing.h"

#include <algorithm>
#include <limits>

#include "numeric/exponential.h"

namespace wasmquant::model {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double exponential(double x) noexcept { return exp2_of(x / kLn2); }

void softmax(std::span<double> x) noexcept {
  double largest = kNever, sum = 0;
  for (const double value : x) largest = std::max(largest, value);
  for (double& value : x) sum += value = exponential(value - largest);
  for (double& value : x) value /= sum;
}

/// The largest value, of equal ones the first, which is then never found again.
uint32_t take_largest(std::span<double> values) noexcept {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[best]) best = i;
  values[best] = kNever;
  return static_cast<uint32_t>(best);
}

/// Leaves out the experts of groups that are not chosen.
void choose_groups(const Routing& routing, std::span<double> scores) {
  const size_t size = scores.size() / routing.groups;
  std::vector<double> sums(routing.groups), group;
  for (size_t g = 0; g < sums.size(); ++g) {
    group.assign(scores.begin() + static_cast<ptrdiff_t>(g * size),
                 scores.begin() + static_cast<ptrdiff_t>((g + 1) * size));
    for (size_t best = 0; best < std::min<size_t>(routing.group_best, size); ++best) {
      const double largest = *std::max_element(group.begin(), group.end());
      sums[g] += largest;
      take_largest(group);
    }
  }
  std::vector<bool> is_chosen(routing.groups);
  for (uint32_t i = 0; i < routing.chosen_groups; ++i) is_chosen[take_largest(sums)] = true;
  for (size_t i = 0; i < scores.size(); ++i)
    if (!is_chosen[i / size]) scores[i] = kNever;
}

}  // namespace

bool Routed::has(uint32_t expert) const noexcept {
  return std::find(experts.begin(), experts.end(), expert) != experts.end();
}

void route(const Routing& routing, std::span<const float> logits, std::span<const float> correction, Routed& out) {
  const size_t count = routing.experts, chosen = routing.chosen;
  out.experts.clear();
  out.weights.clear();
  std::vector<double> scores(count), for_choice(count), weights(chosen);
  for (size_t at = 0; at < logits.size(); at += count) {
    for (size_t i = 0; i < count; ++i) {
      scores[i] = logits[at + i];
      if (routing.scores == Routing::Scores::sigmoid) scores[i] = 1 / (1 + exponential(-scores[i]));
    }
    if (routing.scores == Routing::Scores::softmax) softmax(scores);
    for_choice = scores;
    for (size_t i = 0; i < correction.size(); ++i) for_choice[i] += double{correction[i]};
    if (routing.groups > 1) choose_groups(routing, for_choice);
    for (double& weight : weights) {
      out.experts.push_back(take_largest(for_choice));
      weight = scores[out.experts.back()];
    }
    if (routing.scores == Routing::Scores::softmax_of_chosen) softmax(weights);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    if (!routing.is_normalized) sum = 1;
    for (const double weight : weights) out.weights.push_back(static_cast<float>(weight / sum * double{routing.scale}));
  }
}

}  // namespace wasmquant::model
