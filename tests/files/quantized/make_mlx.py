"""Makes tests/files/quantized/mlx with mlx itself (pip install "mlx[cpu]" numpy): codes of every mode, width, group
size and float type, and in values.safetensors what mlx.core.dequantize makes of them in float32.
    python3 tests/files/quantized/make_mlx.py
"""
import json
from pathlib import Path

import mlx.core as mx

folder = Path(__file__).parent / "mlx"
folder.mkdir(exist_ok=True)
mx.random.seed(17)
tensors, values = {}, {}
quantization = {"group_size": 64, "bits": 4, "mode": "affine"}


def add(name, shape, dtype=mx.float32, said=True, **how):
    weight = (mx.random.normal(shape) * 0.05 + 0.01).astype(dtype)
    codes, scales, *biases = mx.quantize(weight, **how)
    tensors[f"{name}.weight"], tensors[f"{name}.scales"] = codes, scales
    if biases:
        tensors[f"{name}.biases"] = biases[0]
    if said:
        quantization[name] = how
    floats = [each.astype(mx.float32) for each in ([scales, *biases] if biases else [])]
    values[f"{name}.weight"] = (
        mx.dequantize(codes, *floats, **how) if biases else mx.dequantize(codes, scales, dtype=mx.float32, **how)
    )


for bits in (2, 3, 4, 5, 6, 8):
    add(f"affine.{bits}", (3, 128), group_size=32, bits=bits)
for group_size, dtype in ((64, mx.float16), (128, mx.bfloat16)):
    add(f"affine.{group_size}", (3, 128), dtype, group_size=group_size, bits=6)
add("affine.default", (3, 128), mx.bfloat16, said=False, group_size=64, bits=4)
for mode, group_size, bits in (("mxfp4", 32, 4), ("nvfp4", 16, 4), ("mxfp8", 32, 8)):
    add(mode, (3, 96), mx.bfloat16, mode=mode, group_size=group_size, bits=bits)
add("experts.up_proj", (3, 2, 64), mx.bfloat16, group_size=32, bits=3)
add("experts.down_proj", (3, 2, 64), mx.bfloat16, mode="mxfp4", group_size=32, bits=4)
tensors["norm.weight"] = values["norm.weight"] = mx.random.normal((8,))
mx.save_safetensors(str(folder / "model.safetensors"), tensors, {"format": "mlx"})
mx.save_safetensors(str(folder / "values.safetensors"), values, {"mlx": mx.__version__})
config = {"quantization": quantization, "quantization_config": quantization}
(folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
