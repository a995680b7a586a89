"""Configs of Quark's Brevitas extension, and what Brevitas makes of a model by each: `python config_cases.py FOLDER SEED COUNT`.

Makes FOLDER/<model>/, checkpoints of the models of tiny_models.py, and prints a line {"model", "types": {layer: class}} for each,
then a line a config: {"name", "model", "config"} with "error", why it is refused, or "weights": [names of the tensors that are quantized].
FOLDER/<name>.safetensors has "<tensor> values" (dequantized), "<tensor> scale", and of integers "<tensor> zero_point", "<tensor> codes".
Algorithms that change weights are checked by the extension, but not applied.
"""
import copy
import json
import os
import random
import sys
import warnings

os.environ.update(QUARK_LOG_LEVEL="error")
warnings.filterwarnings("ignore")

import torch
from brevitas.nn import QuantMultiheadAttention
from brevitas.nn.mixin import QuantWeightMixin
from brevitas.quant_tensor import IntQuantTensor
from quark.torch.extensions.brevitas.api import ModelQuantizer
from random_configs import as_json, random_config
from safetensors.torch import save_file
from tiny_models import MODELS, make_model

REFUSALS = (AssertionError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)


def say(**line):
    print(json.dumps(line), flush=True)


def weight_name(model, layer):
    """The tensor that a layer's weight was before it was replaced."""
    parent = model.get_submodule(layer.rpartition(".")[0])
    packed = isinstance(parent, QuantMultiheadAttention) and layer.endswith(".in_proj")
    return f"{layer}_weight" if packed else f"{layer}.weight"


def add_weight(tensors, name, module):
    weight = module.quant_weight()
    tensors[f"{name} values"] = weight.value.detach().float().contiguous()
    tensors[f"{name} scale"] = weight.scale.detach().float().reshape(-1).clone()
    if isinstance(weight, IntQuantTensor):
        tensors[f"{name} codes"] = weight.int(float_datatype=True).detach().float().contiguous()
        tensors[f"{name} zero_point"] = weight.zero_point.detach().float().reshape(-1).clone()


def quantized_weights(model, config):
    """The tensors of the weights that Brevitas quantizes."""
    quantizer = ModelQuantizer(config)  # checks the whole config
    quantizer.config = copy.copy(config)
    quantizer.config.pre_quant_opt_config = quantizer.config.algo_config = []
    quantized = quantizer.quantize_model(copy.deepcopy(model)).eval()
    tensors = {}
    with torch.no_grad():
        for layer, module in quantized.named_modules():
            if isinstance(module, QuantWeightMixin) and module.weight_quant.is_quant_enabled:
                add_weight(tensors, weight_name(quantized, layer), module)
    return tensors


def main(folder, seed, count):
    models = {name: make_model(name, os.path.join(folder, name)) for name in MODELS}
    for name, model in models.items():
        say(model=name, types={layer: type(module).__name__ for layer, module in model.named_modules() if layer})
    for i in range(int(count)):
        chosen = random.Random(f"{seed} {i}")
        model_name, config, name = chosen.choice(list(MODELS)), random_config(chosen), f"config-{seed}-{i}"
        case = dict(name=name, model=model_name, config={"dialect": "brevitas", "brevitas_version": "0.13", **as_json(config)})
        try:
            tensors = quantized_weights(models[model_name], config)
        except REFUSALS as error:
            say(**case, error=f"{type(error).__name__}: {error}")
            continue
        if tensors:
            save_file(tensors, os.path.join(folder, f"{name}.safetensors"))
        say(**case, weights=[key.removesuffix(" values") for key in tensors if key.endswith(" values")])


if __name__ == "__main__":
    main(*sys.argv[1:])
