#!/usr/bin/env bash
# nvfp4 of MLX with its optional global scale, one float for a whole weight.
# Seen with mlx 0.32.4 (its CPU build):
#   given the largest magnitude of the weight:          relative error 0.09
#   given that divided by 448 * 6, which is what the second scale of nvfp4 is in compressed-tensors and ModelOpt:
#                                                        relative error 1.00, every value becomes zero or nearly so
#   packed with it and unpacked without it:              values are 2688 / maximum times too large, and nothing is refused
# A guess would be that global_scale is a factor of the values. It is their maximum, and MLX divides it by 448 * 6 itself.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q 'mlx[cpu]==0.32.4' >/dev/null 2>&1

cat >try.py <<'PY'
import mlx.core as mx

mx.random.seed(1)
weight = mx.random.normal((64, 64)) * 0.02
largest = mx.abs(weight).max()

def relative(values):
    return float(mx.sqrt(mx.mean((values - weight) ** 2) / mx.mean(weight ** 2)))

def both_ways(scale):
    codes, scales = mx.quantize(weight, mode='nvfp4', global_scale=scale)
    return relative(mx.dequantize(codes, scales, mode='nvfp4', global_scale=scale).astype(mx.float32))

codes, scales = mx.quantize(weight, mode='nvfp4', global_scale=largest)
with_it = mx.dequantize(codes, scales, mode='nvfp4', global_scale=largest).astype(mx.float32)
without = mx.dequantize(codes, scales, mode='nvfp4').astype(mx.float32)
ratio = float(mx.abs(without).max() / mx.abs(with_it).max()) * float(largest)
print('maximum: error %.2f' % both_ways(largest))
print('maximum / 2688: error %.2f' % both_ways(largest / 2688))
print('without it: %d / maximum' % round(ratio))
PY
python/bin/python try.py | tee seen

expected='maximum: error 0.09
maximum / 2688: error 1.00
without it: 2688 / maximum'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
