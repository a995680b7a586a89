"""Weights with groups that are hard to quantize, and what mx.quantize of MLX makes of them: weights.DTYPE.safetensors has `layer.weight`,
expected.DTYPE.safetensors the three parts for each number of bits. Needs numpy and mlx[cpu]==0.32.4.

    python3 make.py
"""
from pathlib import Path

import mlx.core as mx
import numpy as np

FOLDER = Path(__file__).parent
ROWS, COLUMNS, GROUP = 24, 128, 64
DTYPES = {"F32": mx.float32, "BF16": mx.bfloat16, "F16": mx.float16}


def hard_groups(random):
    """Equal values, zeros, one sign only, far from zero, halves of steps, one value beside zeros, two values, tiny and large ones."""
    for group in range(ROWS * COLUMNS // GROUP):
        values = random.standard_normal(GROUP) * 0.03
        kind = group % 11
        if kind == 1:
            values[:] = random.standard_normal()
        elif kind == 2:
            values[:] = 0
        elif kind == 3:
            values = np.abs(values) + 0.5
        elif kind == 4:
            values = -np.abs(values) - 0.25
        elif kind == 5:
            values = np.round(values * 64) / 32
        elif kind == 6:
            values[1:] = 0
        elif kind == 7:
            values = 0.3 * random.choice([-1, 1], GROUP)
        elif kind == 8:
            values *= 1e-6
        elif kind == 9:
            values *= 1e3
        yield values.astype(np.float32)


def main():
    weight = np.concatenate(list(hard_groups(np.random.default_rng(7)))).reshape(ROWS, COLUMNS)
    for name, dtype in DTYPES.items():
        stored = mx.array(weight).astype(dtype)
        expected = {}
        for bits in (2, 3, 4, 5, 6, 8):
            for part, value in zip(("weight", "scales", "biases"), mx.quantize(stored, group_size=GROUP, bits=bits)):
                expected[f"{bits}.{part}"] = value
        mx.save_safetensors(str(FOLDER / f"weights.{name}.safetensors"), {"model.layers.0.mlp.up_proj.weight": stored}, metadata={"format": "pt"})
        mx.save_safetensors(str(FOLDER / f"expected.{name}.safetensors"), expected)


main()
