// The files of an ONNX plan: their names, and where the pieces of the rewritten model go.
#pragma once
#include <string>

#include "onnx_graph/onnx_rewrite.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class OnnxFiles {
 public:
  /// `plan`: with its tensors; `model`: the index; `onnx`: the model to rewrite. All must outlive this object.
  /// `is_substitute`: of each tensor, whether it has another spec because its operator cannot read the config's.
  OnnxFiles(Plan& plan, const ModelIndex& model, const onnx::Model& onnx, const PlanOptions& options,
            const List<bool>& is_substitute);

  /// The path of the external data file relative to the model.
  std::string data_in_model() const;
  /// Fills files, work, copies and component places of the plan. `chosen`: the plan's tensor for each choice.
  void place(const conversion::OnnxRewrite& rewritten, List<uint32_t> chosen);

 private:
  std::string suffix(const List<bool>& is_substitute) const;
  std::string model_name(const List<bool>& is_substitute) const;
  void place_file(const std::string& name, const conversion::OnnxFile& from, const conversion::OnnxRewrite& rewritten,
                  const List<uint32_t>& chosen);
  void place_composed(PlannedFile& file, const onnx::Range& range, Location to);
  void add_copy(const Location& from, uint64_t bytes, const Location& to);
  uint32_t file_of_copy(const PlannedTensor& planned) const;
  void order_work(List<uint32_t> work);

  Plan& plan_;
  const ModelIndex& model_;
  const onnx::Model& onnx_;
  const PlanOptions& options_;
  const std::string name_, data_name_;
};

}  // namespace wasmquant
