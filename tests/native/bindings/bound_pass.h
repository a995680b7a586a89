// A forward pass driven through its handle, step by step.
#pragma once
#include <functional>

#include "bindings/bound_model.h"
#include "handles/forward_pass.h"
#include "pipeline/forward/forward_plan.h"
#include "pipeline/forward/packed_architecture.h"

namespace wasmquant::testing {

inline std::vector<int32_t> tokens_of_pass(int32_t factor = 7) {
  std::vector<int32_t> tokens(32);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i) * factor % 32;
  return tokens;
}

inline Made<BoundForwardPass> pass_of(const std::string& architecture, const std::vector<int32_t>& tokens,
                                      const std::string& options = R"({"lengths": [16, 16]})") {
  return BoundForwardPass::make(address_of(architecture), static_cast<double>(architecture.size()), options,
                                address_of(tokens), static_cast<double>(tokens.size()));
}

inline std::string packed_config(const std::string& config) {
  return packed_architecture(taken(model::read_architecture(taken(json::parse(config, json::kPython)))));
}

struct BoundPass {
  /// Called after each tile of a tensor.
  using Loaded = std::function<void(const ForwardTensor&)>;

  explicit BoundPass(const std::string& folder = "files/forward/llama",
                     const std::string& options = R"({"lengths": [16, 16]})",
                     const std::vector<int32_t>& tokens = tokens_of_pass(), ForwardUse use = ForwardUse::calibrate)
      : model(folder),
        plan(taken(plan_forward(model.index->index(), *json::parse(model.config, json::kPython), {512, 512}, use))),
        work(work_of(region_of(packed_tasks(plan)))),
        pass(taken(pass_of(packed_architecture(plan.architecture), tokens, options))) {
    for (const ForwardStep& step : plan.steps)
      first.push_back(first.back() + static_cast<uint32_t>(step.tensors.size()));
  }

  Status begin(uint32_t step, size_t tensor) {
    return pass->begin(step, plan.steps[step].tensors[tensor].slot, *work, first[step] + static_cast<uint32_t>(tensor));
  }

  /// Loads a step and runs what is streamed.
  void load(uint32_t step, const Loaded& loaded = {}) {
    const auto& tensors = plan.steps[step].tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      taken_status(begin(step, i));
      for (uint32_t tile = 0; tile < tensors[i].task.tiles; ++tile) {
        model.memory.fill(taken(pass->reads(tile)));
        taken_status(pass->load(tile));
        if (loaded) loaded(tensors[i]);
        if (tensors[i].is_streamed) run();
      }
    }
  }

  void run() {
    for (uint32_t portion = 0; portion < pass->portions(); ++portion) taken_status(pass->run(portion));
  }

  /// Steps [begin, end): each loaded, and run if nothing of it is streamed.
  void steps(uint32_t begin_step, uint32_t end) {
    for (uint32_t step = begin_step; step < end; ++step) {
      load(step);
      bool is_streamed = false;
      for (const ForwardTensor& tensor : plan.steps[step].tensors) is_streamed |= tensor.is_streamed;
      if (!is_streamed) run();
    }
  }
  void all() { steps(0, static_cast<uint32_t>(plan.steps.size())); }

  static void taken_status(const Status& status) {
    if (status) return;
    std::fprintf(stderr, "%s\n", refusal(status).c_str());
    std::abort();
  }

  BoundModel model;
  ForwardPlan plan;
  std::unique_ptr<BoundWork> work;
  std::unique_ptr<BoundForwardPass> pass;
  std::vector<uint32_t> first{0};  // task of a step's first tensor
};

}  // namespace wasmquant::testing
