"""Writes models of 8-bit floats as torch has them, and what torch makes of them.

    python3 small_floats.py FOLDER

Each case is FOLDER/NAME.safetensors with `layer.weight`, perhaps scales, and FOLDER/NAME.expected.safetensors with the weight
in bfloat16. Prints one JSON line a case.
"""
import json
import os
import sys

import torch
from safetensors.torch import save_file

codes = torch.arange(256, dtype=torch.int32).to(torch.uint8).repeat(4).reshape(16, 64)
dtypes = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz,
          "e5m2fnuz": torch.float8_e5m2fnuz}
generator = torch.Generator().manual_seed(1)


def finite(dtype):
    weight = codes.view(dtype)
    return torch.where(torch.isfinite(weight.float()), codes, torch.zeros_like(codes)).view(dtype)


def spread(scale, rows, columns):
    return scale.repeat_interleave(rows, 0)[:16].repeat_interleave(columns, 1)[:, :64]


def write(name, tensors, expected):
    save_file(tensors, os.path.join(sys.argv[1], f"{name}.safetensors"))
    save_file({"layer.weight": expected.to(torch.bfloat16)}, os.path.join(sys.argv[1], f"{name}.expected.safetensors"))
    print(json.dumps({"case": name}), flush=True)


for name, dtype in dtypes.items():
    weight = finite(dtype)
    write(name, {"layer.weight": weight}, weight.float())
for name, suffix, shape, block in (("tensor", "weight_scale", (1, 1), (16, 64)), ("channel", "weight_scale", (16, 1), (1, 64)),
                                   ("blocks", "weight_scale_inv", (1, 2), (32, 32))):
    weight = finite(torch.float8_e4m3fn)
    scale = torch.rand(shape, generator=generator) + 0.01
    write(name, {"layer.weight": weight, f"layer.{suffix}": scale}, weight.float() * spread(scale, *block))
