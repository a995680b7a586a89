"""Biases as Quark leaves them in a model that it has frozen: `python biases.py FOLDER`.

Writes FOLDER/opt, a tiny OPT, whose linear layers have biases. Prints for each spec of biases {"name", "config": as Quark writes it, "values":
file with the biases of every layer}, or {"name", "error"}.
"""
import copy
import json
import os
import warnings
import sys

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1", TQDM_DISABLE="1", OMP_NUM_THREADS="1")
warnings.filterwarnings("ignore")

import torch
from quark.torch import ModelQuantizer
from quark.torch.quantization.config.config import (FP8E4M3PerTensorSpec, Int8PerChannelSpec, Int8PerTensorSpec, QConfig, QLayerConfig,
                                                    Uint8PerTensorSpec)
from quark.torch.quantization.nn.modules.mixin import QuantMixin
from random_specs import REFUSALS
from safetensors.torch import save_file
from tiny_models import make_model

STATIC = dict(is_dynamic=False)
INTEGER = dict(observer_method="min_max", scale_type="float", round_method="half_even", **STATIC)
WEIGHT = Int8PerChannelSpec(symmetric=True, ch_axis=0, **STATIC)
SPECS = {
    "int8 per tensor": Int8PerTensorSpec(symmetric=True, **INTEGER),
    "uint8 per tensor": Uint8PerTensorSpec(symmetric=False, **INTEGER),
    "fp8 per tensor": FP8E4M3PerTensorSpec(observer_method="min_max", **STATIC),
    "int8 per channel": Int8PerChannelSpec(symmetric=False, ch_axis=0, **STATIC),
}


def main(folder):
    model = make_model("opt", os.path.join(folder, "opt"))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith(".bias"):
                value.normal_(std=0.1)
    save_file({name: value.clone() for name, value in model.state_dict().items()}, os.path.join(folder, "opt", "model.safetensors"))
    for name, spec in SPECS.items():
        layer = QLayerConfig(weight=WEIGHT.to_quantization_spec(), bias=spec.to_quantization_spec())
        line = {"name": name, "values": os.path.join(folder, f"{name}.safetensors".replace(" ", "-"))}
        try:
            config = QConfig(global_quant_config=layer, exclude=["lm_head"])
            line["config"] = config.to_dict()
            quantizer = ModelQuantizer(config)
            with torch.no_grad():
                frozen = quantizer.freeze(quantizer.quantize_model(copy.deepcopy(model), None))
            biases = {f"{path}.bias": module._bias_quantizer(module.bias) if getattr(module, "_bias_quantizer", None) else module.bias
                      for path, module in frozen.named_modules() if isinstance(module, QuantMixin)}
            save_file({path: value.detach().float().clone() for path, value in biases.items()}, line["values"])
        except REFUSALS as error:
            line["error"] = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
