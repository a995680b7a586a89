// Observers: scale and zero point from a sequence of tensors (batches), fed in pieces to any number of observers.
//
//   begin(0, shape)  update(x, at) ...  begin(1, shape)  update(x, at) ...      pass 1
//   next_pass(), then the same batches again                                    pass 2, where passes() is 2
//   finish()
//
// Sharing: at the end of a pass one observer merges all others, and before next_pass() each of them merges that one.
// Pieces and batches may go to any observer in any order: ranges are minima and maxima, all else is counts and exact
// sums, so the result is the same to the bit.
//
// How another batch changes the range, as AMD Quark keeps its state between calls (spec 4.1):
//   dynamic specs, per_group   each batch replaces the range (per_group with block_max observers: accumulate)
//   per_tensor, static         ranges accumulate across shapes
//   per_channel, static        ranges accumulate while the number of channels stays; another number starts over
// The files of other tools' observers say how they combine batches.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "observers/range_observer.h"
#include "observers/statistics/observation.h"

namespace wasmquant {

/// Base of all observers.
class Observer {
 public:
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  const QuantizationSpec& spec() const noexcept { return spec_; }
  uint32_t passes() const noexcept { return passes_; }
  uint32_t pass() const noexcept { return pass_; }  // 1 or 2
  /// Whether it keeps the elements of whole batches in memory.
  bool keeps_data() const noexcept { return data_ != Data::none; }
  /// Whether it keeps those of all batches until finish.
  bool keeps_all_data() const noexcept { return data_ == Data::all_batches; }

  /// The number of consecutive elements that complete a scale, so that it can be settled immediately. Of such a tensor
  /// only parts of scales are kept, even by an observer that keeps its data. Nothing if no scale can be settled before
  /// the whole tensor was seen.
  virtual std::optional<uint64_t> settling_elements(const Granularity&) const noexcept { return std::nullopt; }

  /// Weights for the squared errors of per_scale_mse and half_quadratic's first guess: importance[i] applies to the
  /// elements at index i of dimension 1, the input channels of a weight (llama.cpp's imatrix). Call before the first
  /// batch; batches must then have as many input channels. Errors: state-invalid after a batch or if the observer
  /// measures no element errors, argument-invalid (names the entry) for negative or non-finite entries.
  Status weigh(std::span<const float> importance);

  /// The second scale (scale_format e4m3) also has to hold values of this range, those of other tensors that share it.
  /// Others ignore it.
  void join(const ValueRange& others) noexcept { joined_.add(others); }

  /// Starts batch number `batch` in the order of calibration; batches may be skipped (another observer has them) and
  /// resumed. Errors: those of granularity_of; shape-mismatch when a resumed batch has different scales than before;
  /// state-invalid in pass 2 for a batch that pass 1 did not have.
  Status begin(uint64_t batch, const std::vector<uint64_t>& shape);
  /// Elements [at, at + x.size()) of the flat batch. Returns the flat index of the first non-finite element, or -1; in
  /// pass 2 always -1. Non-finite elements are skipped. Requires a begin() after the last merge() or next_pass().
  int64_t update(std::span<const float> x, uint64_t at) noexcept;
  /// Adds what `other`, with the same spec and options and in the same pass, saw in this pass. Errors: state-invalid if
  /// they do not belong together, shape-mismatch if their scales differ.
  Status merge(const Observer& other);
  /// From pass 1 to pass 2. Error: state-invalid if there is no second pass.
  Status next_pass();
  /// Back to the state before the first batch.
  void reset() noexcept;
  /// Errors: state-invalid when a pass is missing, or the second pass saw none of the first pass's data.
  Result<Observation> finish() const;

 protected:
  /// Which elements are kept. until_complete: each batch's, until all of it has arrived; its summary_of remains.
  enum class Data : uint8_t { none, until_complete, last_batch, all_batches };
  struct Piece {
    uint64_t at;
    std::vector<float> values;
  };
  struct Batch {
    uint64_t number;
    RangeObserver range;
    std::vector<uint64_t> shape = {};  // while elements are kept
    List<Piece> pieces = {};
    std::vector<float> summary = {};
    uint64_t settled = 0;  // elements of the scales that settle() has processed
  };

  Observer(const QuantizationSpec& spec, uint32_t passes, bool keeps_batches, Data data = Data::none)
      : spec_(spec), passes_(passes), keeps_batches_(keeps_batches), data_(data) {}

  /// In ascending order of batch numbers. Unless it keeps all batches, the only one has the combined range.
  size_t batch_count() const noexcept { return batches_.size(); }
  const RangeObserver& range(size_t index) const noexcept { return batches_[index]->range; }
  /// The elements of a batch that were kept, and its shape.
  std::vector<float> data(size_t index) const;
  const std::vector<uint64_t>& shape(size_t index) const noexcept { return batches_[index]->shape; }
  const std::vector<float>& summary(size_t index) const noexcept { return batches_[index]->summary; }
  /// What to keep of a complete batch; not empty.
  virtual std::vector<float> summary_of(size_t /*index*/) const { return {}; }
  /// Elements [at, at + x.size()), whole scales of `unit` = settling_elements() elements each; results go to `summary`,
  /// NaN if unknown.
  virtual void settle(size_t /*index*/, std::span<const float> /*x*/, uint64_t /*unit*/, uint64_t /*at*/,
                      std::vector<float>& /*summary*/) {}
  std::span<const float> importance() const noexcept { return importance_; }
  /// Of the chosen ranges; of tensors that share it, of all their values, so that all choose the same.
  float second_scale(const Observation& observation) const noexcept;
  /// Whether each batch replaces the one before.
  bool replaces() const noexcept;

  // ---- pass 2, for observers that have one
  /// All ranges are known.
  virtual void start_pass() {}
  /// The pieces that follow are of batch `index`, as in range(index).
  virtual void start_batch(size_t /*index*/, const Granularity&) {}
  virtual void count(std::span<const float> /*x*/, uint64_t /*at*/) noexcept {}
  virtual void merge_counts(const Observer& /*other*/) noexcept {}

  /// After all passes, with a batch or more; fills qparams, min and max (initially the last batch's range), and where it
  /// chooses other ranges, second_scale. The spec of `observation` is the observer's.
  virtual void choose(Observation& observation) const = 0;

 private:
  // Adds the batch and makes it current; if a later batch has replaced it, nothing is current.
  Status take_in(uint64_t number, RangeObserver&& range, bool is_merge);
  Status find(uint64_t number);
  // Whether the data of batch `index` may still be needed.
  bool keeps_data_of(size_t index) const noexcept {
    if (data_ == Data::until_complete) return batches_[index]->summary.empty();
    return data_ == Data::all_batches || (data_ == Data::last_batch && index + 1 == batches_.size());
  }
  void keep(size_t index, std::span<const float> x, uint64_t at);
  // Keeps part of a scale; the last part settles the scale.
  void keep_part(size_t index, std::span<const float> x, uint64_t at, uint64_t unit);
  // Drops data that is no longer needed once batch current_ has grown.
  void drop_data();
  static bool is_complete(const Batch& batch) noexcept;
  Status check_data() const;

  QuantizationSpec spec_;
  uint32_t passes_, pass_ = 1;
  bool keeps_batches_;
  Data data_;
  std::vector<float> importance_;
  ValueRange joined_;
  std::vector<std::unique_ptr<Batch>> batches_;
  size_t current_ = kNone;    // index in batches_
  bool has_counted_ = false;  // anything in pass 2
  static constexpr size_t kNone = static_cast<size_t>(-1);
};

/// Makes the observer that spec.observer names; observers.def lists them.
using ObserverFactory = std::unique_ptr<Observer>(const QuantizationSpec& spec, const ObserverOptions& options);

/// One whole batch in the observer's current pass. Errors: those of begin; shape-mismatch when x and shape disagree;
/// value-not-finite (names the element). After an error the state is unchanged.
Status observe(Observer& observer, uint64_t batch, std::span<const float> x, const std::vector<uint64_t>& shape);

}  // namespace wasmquant
