"""Maps of aihwkit's digital quantization, and what it makes of a model by each: `python config_cases.py FOLDER SEED COUNT`.

Makes FOLDER/<model>/, checkpoints of the models of tiny_models.py, and prints a line {"model", "types": {module: class}} for each, then a line a
map: {"name", "model", "config"} with "error", why it is refused, or "weights": [names of the tensors that are quantized]; FOLDER/<name>.safetensors has
"<tensor> values" and "<tensor> scale", and where there are any "<tensor> zero_point".
"""
import json
import os
import random
import sys
import warnings

warnings.filterwarnings("ignore")

import torch
from aihwkit.nn.low_precision_conversion import convert_to_quantized
from aihwkit.simulator.digital_low_precision.hijacker import QuantizationHijacker
from random_maps import as_json, random_map
from safetensors.torch import save_file
from tiny_models import MODELS, make_model

REFUSALS = (AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)


def say(**line):
    print(json.dumps(line), flush=True)


def quantized_weights(model, quantization_map):
    """The tensors of the weights that aihwkit quantizes, with ranges estimated from the weights themselves."""
    converted = convert_to_quantized(model, quantization_map).train()
    tensors = {}
    with torch.no_grad():
        for name, module in converted.named_modules():
            if not isinstance(module, QuantizationHijacker) or not module._quant_w:
                continue
            tensor = f"{name}.weight".replace(".module.", ".")  # modules with quantized inputs are wrapped
            weight, _ = module.get_params()
            quantizer = module.weight_quantizer.quantizer
            tensors[f"{tensor} values"] = weight.detach().float().contiguous()
            tensors[f"{tensor} scale"] = torch.as_tensor(quantizer.scale).detach().float().reshape(-1).clone()
            if not quantizer.symmetric:
                tensors[f"{tensor} zero_point"] = torch.as_tensor(quantizer.zero_point).detach().float().reshape(-1).clone()
    return tensors


def main(folder, seed, count):
    models = {name: make_model(name, os.path.join(folder, name)) for name in MODELS}
    for name, model in models.items():
        say(model=name, types={layer: type(module).__name__ for layer, module in model.named_modules() if layer})
    for i in range(int(count)):
        chosen = random.Random(f"{seed} {i}")
        model_name, name = chosen.choice(list(MODELS)), f"map-{seed}-{i}"
        quantization_map, appended = random_map(chosen, models[model_name])
        case = dict(name=name, model=model_name, config=as_json(quantization_map, appended))
        try:
            tensors = quantized_weights(models[model_name], quantization_map)
        except REFUSALS as error:
            say(**case, error=f"{type(error).__name__}: {error}")
            continue
        if tensors:
            save_file(tensors, os.path.join(folder, f"{name}.safetensors"))
        say(**case, weights=[key.removesuffix(" values") for key in tensors if key.endswith(" values")])


if __name__ == "__main__":
    main(*sys.argv[1:])
