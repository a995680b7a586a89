"""What Brevitas makes of weights by the arguments of its program for language models: `python quantizer_numbers.py FOLDER SEED COUNT`.

Writes FOLDER/numbers.safetensors: `matrix` and `kernel` (of a convolution), and as "0", "1", ... what they are after they were quantized and dequantized. Prints
a line a case: {"arguments", "weight": "matrix" or "kernel", "values": name}, or with "error" why Brevitas does not do it.
Every kind of quantizer of the program comes first, then random ones up to COUNT.
"""
import json
import os
import random
import sys
import warnings

os.environ.update(QUARK_LOG_LEVEL="error")
warnings.filterwarnings("ignore")

import torch
from brevitas import nn as quant_nn
from random_quantizers import KINDS, make_quantizer, random_arguments
from safetensors.torch import save_file
from tiny_models import difficult

REFUSALS = (AssertionError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)


def layer_of(weight, quantizer):
    if weight.dim() == 2:
        layer = quant_nn.QuantLinear(weight.shape[1], weight.shape[0], bias=False, weight_quant=quantizer)
    else:
        layer = quant_nn.QuantConv2d(weight.shape[1], weight.shape[0], weight.shape[2:], bias=False, weight_quant=quantizer)
    layer.weight.data = weight.clone()
    return layer.eval()


def main(folder, seed, count):
    weights = {"matrix": difficult((64, 128), 7), "kernel": difficult((32, 32, 3, 3), 8)}
    values = dict(weights)
    for i in range(max(int(count), len(KINDS))):
        c = random.Random(f"{seed} {i}")
        kind = KINDS[i] if i < len(KINDS) else c.choice(KINDS)
        arguments = random_arguments(c, kind)
        weight = "kernel" if c.random() < 0.2 and kind[3] != "per_group" else "matrix"
        case = dict(arguments=arguments, weight=weight, values=str(i))
        if kind[2] == "hqo":  # takes seconds a case, and no spec says the same
            print(json.dumps(case), flush=True)
            continue
        try:
            with torch.no_grad():
                made = layer_of(weights[weight], make_quantizer(arguments)).quant_weight().value
        except REFUSALS as error:
            print(json.dumps(dict(case, error=f"{type(error).__name__}: {error}")), flush=True)
            continue
        values[str(i)] = made.detach().float().contiguous().clone()
        print(json.dumps(case), flush=True)
    save_file(values, os.path.join(folder, "numbers.safetensors"))


if __name__ == "__main__":
    main(*sys.argv[1:])
