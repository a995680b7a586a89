// Scales and minima run by run, then codes, in strips of rows; blocks are read before a strip and written after it.
#include "algorithms/rounding/block_refinement.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "algorithms/rounding/refinement.h"
#include "kernels/ggml/ggml_codebook.h"
#include "kernels/ggml/ggml_grid.h"

namespace wasmquant {
namespace {

constexpr size_t kRows = Descent::kRows;

// Scales, or minima, of a run in all rows.
using OfRows = float[kRows];

struct BlockDescent {
  const GgmlTypeInfo& info;
  size_t columns, run;
  std::span<float> values;
  std::span<uint8_t> blocks;
  std::vector<float> scale, minimum, unit, minimum_unit;  // [runs][kRows], of the strip

  uint8_t* block_at(size_t row, size_t column) const noexcept {
    return blocks.data() + info.bytes_of(row * columns + column / info.block * info.block);
  }

  void load(size_t first, size_t count) {
    const size_t runs = columns / run;
    for (auto* each : {&scale, &minimum, &unit, &minimum_unit}) each->assign(runs * kRows, 0.0f);
    for (size_t r = 0; r < count; ++r)
      for (size_t column = 0; column < columns; column += info.block) {
        const kernels::BlockGrid grid = kernels::grid_of(info.type, block_at(first + r, column));
        for (size_t i = 0; i < info.block / run; ++i) {
          const size_t at = (column / run + i) * kRows + r;
          scale[at] = grid.scale[i];
          minimum[at] = grid.minimum[i];
          unit[at] = grid.unit;
          minimum_unit[at] = grid.minimum_unit;
        }
      }
  }

  // The step that `direction` [run][kRows] is best multiplied by, in each row.
  void best_steps(const Descent& at, size_t first, const std::vector<float>& direction, double* steps) const {
    double slope[kRows] = {}, curve[kRows] = {};
    for (size_t j = 0; j < run; ++j) {
      float product[kRows] = {};  // H u
      for (size_t i = 0; i < run; ++i) {
        const float h = at.hessian[(first + j) * columns + first + i];
        for (size_t r = 0; r < kRows; ++r) product[r] += h * direction[i * kRows + r];
      }
      const float *const u = direction.data() + j * kRows, *const pull = at.pull + (first + j) * kRows;
      for (size_t r = 0; r < kRows; ++r) {
        slope[r] += double{u[r]} * pull[r];
        curve[r] += double{u[r]} * product[r];
      }
    }
    for (size_t r = 0; r < kRows; ++r) steps[r] = curve[r] > 0 ? slope[r] / curve[r] : 0;
  }

  // Changes the run's scales, or its minima, where that lowers the error.
  void move_scales(Descent& at, size_t first, bool is_minimum) {
    const size_t of_run = first / run * kRows;
    std::vector<float> levels(run * kRows), direction(run * kRows);
    for (size_t j = 0; j < run; ++j)
      for (size_t r = 0; r < at.count; ++r) {
        const float s = scale[of_run + r], value = at.now[(first + j) * kRows + r];
        levels[j * kRows + r] = s != 0 ? std::round((value + minimum[of_run + r]) / s) : 0.0f;
        direction[j * kRows + r] = is_minimum ? -1.0f : levels[j * kRows + r];
      }
    double steps[kRows];
    best_steps(at, first, direction, steps);
    bool any = false;
    for (size_t r = 0; r < at.count; ++r) {
      float& old = (is_minimum ? minimum : scale)[of_run + r];
      const auto wanted = static_cast<float>(old + steps[r]);
      const float found = is_minimum ? kernels::storable_minimum(info.type, wanted, minimum_unit[of_run + r])
                                     : kernels::storable_scale(info.type, wanted, unit[of_run + r]);
      // A parabola around the best step: nearer is better.
      if (!std::isfinite(found) || !(std::fabs(found - wanted) < std::fabs(old - wanted))) continue;
      if (!is_minimum && (found == 0) != (old == 0)) continue;
      old = found;
      any = true;
    }
    for (size_t j = 0; any && j < run; ++j) {
      float x[kRows] = {};
      for (size_t r = 0; r < at.count; ++r) x[r] = scale[of_run + r] * levels[j * kRows + r] - minimum[of_run + r];
      at.set(first + j, x);
    }
  }

  void improve(Descent& at) {
    if (at.begin == 0) load(at.first, at.count);
    for (size_t first = at.begin; first < at.end; first += std::min(run, at.end - at.begin)) {
      if (kernels::has_free_scales(info.type) && run <= Descent::kColumns) {
        move_scales(at, first, false);
        if (kernels::has_minima(info.type)) move_scales(at, first, true);
      }
      for (size_t j = first; j < std::min(first + run, at.end); ++j) {
        float x[kRows];
        uint8_t codes[kRows];
        if (!at.wanted(j, x)) continue;
        const size_t of_run = j / run * kRows;
        kernels::nearest_codes(info.type, scale.data() + of_run, minimum.data() + of_run, at.count, x, codes);
        at.set(j, x);
      }
    }
    if (at.end == columns) store(at);
  }

  // Codes follow from values.
  void store(const Descent& at) {
    std::vector<uint8_t> codes(info.block);
    for (size_t r = 0; r < at.count; ++r)
      for (size_t column = 0; column < columns; column += info.block) {
        uint8_t* const block = block_at(at.first + r, column);
        kernels::BlockGrid grid = kernels::grid_of(info.type, block);
        for (size_t j = 0; j < info.block; ++j) {
          const size_t of_run = (column + j) / run * kRows + r;
          grid.scale[j / run] = scale[of_run];
          grid.minimum[j / run] = minimum[of_run];
          float x = at.now[(column + j) * kRows + r];
          kernels::nearest_codes(info.type, &scale[of_run], &minimum[of_run], 1, &x, &codes[j]);
        }
        if (kernels::has_free_scales(info.type)) kernels::put_scales(info.type, grid, block);
        kernels::put_codes(info.type, codes.data(), block);
      }
  }
};

}  // namespace

void refine_blocks(std::span<const float> hessian, GgmlType type, std::span<const float> weight,
                   std::span<float> values, std::span<uint8_t> blocks) {
  if (kernels::has_codebook(type)) return;
  const auto columns = static_cast<size_t>(std::sqrt(static_cast<double>(hessian.size())) + 0.5);
  BlockDescent work{info_of(type), columns, kernels::run_of(type), values, blocks, {}, {}, {}, {}};
  descend(hessian, weight, values, [&](Descent& at) { work.improve(at); });
}

}  // namespace wasmquant
