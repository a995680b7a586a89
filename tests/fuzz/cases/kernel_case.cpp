// The cases of kernel_case.h, a kernel or a few of one kind each. Values stay within what the kernels' contracts allow.
#include "cases/kernel_case.h"

#include <algorithm>

namespace wasmquant::fuzz {

using namespace kernels;

void KernelCase::reduce() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  const auto tell = [](Digest& digest, const Extent& extent, const AbsMax& most, int64_t at) {
    digest.add(extent.min), digest.add(extent.max), digest.add(extent.all_finite);
    digest.add(most.value), digest.add(most.all_finite), digest.add(at);
  };
  same_answer([&](Digest& d) { tell(d, reduce_extent(x), reduce_absmax(x), find_non_finite(x)); },
              [&](Digest& d) {
                tell(d, reference::reduce_extent(x), reference::reduce_absmax(x), reference::find_non_finite(x));
              });
  same<float>(
      count_ == 0 ? 0 : runs(), [&](float* y) { reduce_absmax_runs(x, run_length_, y); },
      [&](float* y) { reference::reduce_absmax_runs(x, run_length_, y); });
  const std::vector<float> least(count_, 1.0f), most(count_, -1.0f);
  const auto with = [&](auto&& accumulate) {
    return [&](float* y) {
      std::copy(least.begin(), least.end(), y);
      std::vector<float> max = most;
      accumulate(x, y, max.data());
    };
  };
  same<float>(count_, with(accumulate_extent), with(reference::accumulate_extent));
}

void KernelCase::quantize_int() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  std::vector<Affine> grids(runs());
  for (Affine& each : grids) each = grid();
  const auto round = static_cast<RoundMethod>(choose_.below(4));
  const auto path = static_cast<Path>(choose_.below(2));
  const bool is_signed = choose_.flag();
  same<uint8_t>(
      count_, [&](uint8_t* y) { quantize_codes8(x, grids.data(), run_length_, round, path, y); },
      [&](uint8_t* y) { reference::quantize_codes8(x, grids.data(), run_length_, round, path, y); });
  same<float>(
      count_, [&](float* y) { fake_quantize_int(x, grids.data(), run_length_, round, y); },
      [&](float* y) { reference::fake_quantize_int(x, grids.data(), run_length_, round, y); });
  std::vector<uint8_t> codes(x.size());
  for (uint8_t& code : codes) code = choose_.byte();
  same<float>(
      count_, [&](float* y) { dequantize_codes8(codes, is_signed, grids.data(), run_length_, y); },
      [&](float* y) { reference::dequantize_codes8(codes, is_signed, grids.data(), run_length_, y); });
  for (Affine& each : grids)
    each.quant_min = is_signed ? -32768.0f : 0, each.quant_max = is_signed ? 32767.0f : 65535.0f;
  same<uint16_t>(
      count_, [&](uint16_t* y) { quantize_codes16(x, grids.data(), run_length_, round, path, y); },
      [&](uint16_t* y) { reference::quantize_codes16(x, grids.data(), run_length_, round, path, y); });
}

void KernelCase::quantize_int_each() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  const Affine one = grid();
  std::vector<float> inverse(x.size()), zero(x.size());
  for (float& each : inverse) each = 1.0f / choose_.scale();
  for (float& each : zero) each = one.zero_point + static_cast<float>(choose_.below(4));
  const auto round = static_cast<RoundMethod>(choose_.below(4));
  const auto path = static_cast<Path>(choose_.below(2));
  const auto with = [&](auto&& quantize) {
    return [&](uint8_t* y) { quantize(x, inverse.data(), zero.data(), one.quant_min, one.quant_max, round, path, y); };
  };
  same<uint8_t>(count_, with(quantize_codes8_each), with(reference::quantize_codes8_each));
}

void KernelCase::divide() {
  const std::vector<float> all = numbers(true);
  std::vector<float> divisors = numbers(true);
  divisors.push_back(choose_.scale());
  const size_t stride = choose_.below(2);
  same<float>(
      count_, [&](float* y) { kernels::divide(start(all), divisors.data() + offset_, stride, y); },
      [&](float* y) { reference::divide(start(all), divisors.data() + offset_, stride, y); });
}

void KernelCase::minifloat() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  std::vector<float> scales(runs());
  for (float& each : scales) each = choose_.scale();
  const int exponent_bits = 1 + static_cast<int>(choose_.below(7)), mantissa_bits = static_cast<int>(choose_.below(11));
  FloatFormat format = plain_minifloat(exponent_bits, mantissa_bits);
  List<Dtype> named;
  for (const DtypeInfo& info : kDtypes)
    if (info.kind == DtypeKind::floating && info.bits != 0 && info.bits <= 8) named.push_back(info.dtype);
  if (choose_.flag() || format.bits() > 8) {
    same<float>(
        count_, [&](float* y) { fake_quantize_float(x, scales.data(), run_length_, format, y); },
        [&](float* y) { reference::fake_quantize_float(x, scales.data(), run_length_, format, y); });
    format = float_format_of(named[choose_.below(static_cast<uint32_t>(named.size()))]);
  }
  same<uint8_t>(
      count_, [&](uint8_t* y) { quantize_float(x, scales.data(), run_length_, format, y); },
      [&](uint8_t* y) { reference::quantize_float(x, scales.data(), run_length_, format, y); });
  std::vector<uint8_t> codes(x.size());
  for (uint8_t& code : codes) code = static_cast<uint8_t>(choose_.byte() & ((1u << format.bits()) - 1));
  same<float>(
      count_, [&](float* y) { dequantize_float(codes, scales.data(), run_length_, format, y); },
      [&](float* y) { reference::dequantize_float(codes, scales.data(), run_length_, format, y); });
}

void KernelCase::block_float() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  constexpr Dtype kDtypesOfBlocks[] = {Dtype::mx6, Dtype::mx9, Dtype::bfp16};
  const Dtype dtype = kDtypesOfBlocks[choose_.below(3)];
  const BlockFloatFormat format = block_float_of(dtype, choose_.flag() ? 0 : 2 * (1 + choose_.below(20)));
  const size_t blocks = count_ / format.block + 1, pairs = count_ / 2 + 1;
  std::vector<uint8_t> exponents(blocks), shifts(pairs);
  std::vector<int8_t> codes(count_);
  const auto with = [&](auto&& quantize) {
    return [&, quantize](uint8_t* y) {
      std::fill(exponents.begin(), exponents.end(), uint8_t{0});
      std::fill(shifts.begin(), shifts.end(), uint8_t{0});
      quantize(x, format, exponents.data(), shifts.data(), codes.data());
      y = std::copy(exponents.begin(), exponents.end(), y);
      y = std::copy(shifts.begin(), shifts.end(), y);
      std::transform(codes.begin(), codes.end(), y, [](int8_t code) { return static_cast<uint8_t>(code); });
    };
  };
  same<uint8_t>(blocks + pairs + count_, with(quantize_block_float), with(reference::quantize_block_float));
  same<float>(
      count_, [&](float* y) { dequantize_block_float(codes, format, exponents.data(), shifts.data(), y); },
      [&](float* y) { reference::dequantize_block_float(codes, format, exponents.data(), shifts.data(), y); });
}

void KernelCase::casts() {
  const std::vector<float> all = numbers(true);
  const auto x = start(all);
  std::vector<uint16_t> halves(x.size());
  for (uint16_t& bits : halves) bits = static_cast<uint16_t>(choose_.word());
  same<uint16_t>(
      count_, [&](uint16_t* y) { narrow_bf16(x, y); }, [&](uint16_t* y) { reference::narrow_bf16(x, y); });
  same<uint16_t>(
      count_, [&](uint16_t* y) { narrow_f16(x, y); }, [&](uint16_t* y) { reference::narrow_f16(x, y); });
  same<float>(
      count_, [&](float* y) { widen_bf16(halves, y); }, [&](float* y) { reference::widen_bf16(halves, y); });
  same<float>(
      count_, [&](float* y) { widen_f16(halves, y); }, [&](float* y) { reference::widen_f16(halves, y); });
}

void KernelCase::nibbles() {
  std::vector<uint8_t> codes(count_ + offset_);
  for (uint8_t& code : codes) code = choose_.byte();
  const auto x = start(codes);
  const uint32_t add = choose_.below(16);
  const bool is_signed = choose_.flag();
  same<uint8_t>((count_ + 1) / 2, [&](uint8_t* y) { pack_nibbles(x, add, y); },
                [&](uint8_t* y) { reference::pack_nibbles(x, add, y); });
  const size_t twice = count_ * 2 - (count_ > 0 && choose_.flag());
  same<uint8_t>(
      twice, [&](uint8_t* y) { unpack_nibbles(x, twice, add, is_signed, y); },
      [&](uint8_t* y) { reference::unpack_nibbles(x, twice, add, is_signed, y); });
}

void KernelCase::product() {
  const size_t rows = choose_.below(20), columns = choose_.below(50), depth = choose_.below(300);
  const size_t wide = std::max({rows, columns, depth}) + choose_.below(4), stride = columns + choose_.below(3);
  const bool turned = choose_.flag();
  std::vector<float> a(wide * wide + offset_), b(wide * wide + offset_), before(rows * stride);
  for (std::vector<float>* all : {&a, &b, &before})
    for (float& v : *all) v = choose_.number(false) * 0x1p-40f;
  const Factor left{a.data() + offset_, turned ? 1 : wide, turned ? wide : 1};
  const Factor right{b.data() + offset_, turned ? 1 : wide, turned ? wide : 1};
  const auto update = static_cast<Update>(choose_.below(3));
  const auto region = static_cast<Region>(choose_.below(2));
  std::vector<float> workspace(matmul_workspace(rows, columns, depth));
  const auto begin = [&](float* c) { std::copy(before.begin(), before.end(), c); };
  same<float>(
      rows * stride,
      [&](float* c) {
        begin(c);
        matmul(left, right, depth, rows, columns, update, region, c, stride, workspace.data());
      },
      [&](float* c) {
        begin(c);
        reference::matmul(left, right, depth, rows, columns, update, region, c, stride);
      });
}

void KernelCase::exponentials() {
  const std::vector<float> all = numbers(true), up = numbers(true);
  const auto x = start(all);
  const float shift = choose_.number(false);
  const auto with = [&](auto&& sum_of) { return [&, sum_of](float* y) { y[count_] = sum_of(x, shift, y); }; };
  same<float>(count_ + 1, with(kernels::exponentials), with(reference::exponentials));
  const auto in_place = [&](auto&& change) {
    return [&, change](float* y) {
      std::copy(x.begin(), x.end(), y);
      change(std::span<float>(y, count_));
    };
  };
  const float cap = 1.0f + static_cast<float>(choose_.byte());
  same<float>(count_, in_place([&](std::span<float> y) { soft_cap(y, cap); }),
              in_place([&](std::span<float> y) { reference::soft_cap(y, cap); }));
  const auto activation = static_cast<Activation>(choose_.below(3));
  const float* factors = up.data() + offset_;
  same<float>(count_, in_place([&](std::span<float> y) { activate_gate(activation, y, factors); }),
              in_place([&](std::span<float> y) { reference::activate_gate(activation, y, factors); }));
}

void KernelCase::error_sums() {
  const std::vector<float> all = numbers(true), others = numbers(true);
  const auto tell = [](Digest& digest, const ErrorSums& sums) {
    digest.add(sums.signal), digest.add(sums.quantized), digest.add(sums.noise);
    digest.add(sums.max_abs), digest.add(sums.count);
  };
  const float* y = others.data() + offset_;
  same_answer([&](Digest& d) { tell(d, error_between(start(all), y)); },
              [&](Digest& d) { tell(d, reference::error_between(start(all), y)); });
}

void KernelCase::search() {
  std::vector<float> all = numbers(false), weights = numbers(false);
  for (float& v : all) v = std::fmod(v, 1000.0f);
  for (float& w : weights) w = std::fabs(std::fmod(w, 100.0f));
  const size_t grids = SearchGrids::kStep * (1 + choose_.below(4));
  std::vector<float> scale(grids), inverse(grids), low(grids), high(grids);
  for (size_t i = 0; i < grids; ++i) {
    const Affine each = grid();
    scale[i] = small_scale(12);
    inverse[i] = 1.0f / scale[i];
    low[i] = each.quant_min;
    high[i] = each.quant_max;
  }
  const SearchGrids table{scale.data(), inverse.data(), low.data(), high.data(), grids};
  const float* w = choose_.flag() ? weights.data() + offset_ : nullptr;
  same<float>(
      grids, [&](float* y) { search_errors(start(all), w, table, y); },
      [&](float* y) { reference::search_errors(start(all), w, table, y); });
}

void KernelCase::half_quadratic() {
  std::vector<float> all = numbers(false);
  for (float& v : all) v = std::fmod(v, 500.0f);
  const float scale = small_scale(8);
  const float exponent = -static_cast<float>(1 + choose_.byte()) / 256.0f;
  const HalfQuadratic at{scale,
                         1 / scale,
                         static_cast<float>(choose_.byte()) / 16,
                         0,
                         15,
                         static_cast<RoundMethod>(choose_.below(4)),
                         exponent,
                         static_cast<float>(choose_.byte()) / 512};
  const auto tell = [](Digest& digest, const HalfQuadraticSums& sums) {
    digest.add(sums.loss), digest.add(sums.zero), digest.add(sums.cross), digest.add(sums.squares);
  };
  same_answer([&](Digest& d) { tell(d, kernels::half_quadratic(start(all), at)); },
              [&](Digest& d) { tell(d, reference::half_quadratic(start(all), at)); });
}

void KernelCase::bins() {
  const std::vector<float> all = numbers(false);
  const Bins rule{static_cast<double>(choose_.number(false)), static_cast<double>(choose_.scale()),
                  choose_.word() & 0x7FFF, choose_.flag()};
  const auto with = [&](auto&& find) {
    return [&, find](uint32_t* y) {
      const Binned found = find(start(all), rule, y);
      y[count_] = static_cast<uint32_t>(found.zeros);
      y[count_ + 1] = found.all_finite;
    };
  };
  same<uint32_t>(count_ + 2, with(find_bins), with(reference::find_bins));
}

}  // namespace wasmquant::fuzz
