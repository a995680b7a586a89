"""Quantized inputs of aihwkit's maps: `python input_cases.py FOLDER SEED COUNT`.

Makes FOLDER/inputs/model.safetensors, linear layers that each get an input of their own, and prints a line a map: {"name", "config",
"estimator", "symmetric", "layers": [those whose inputs are quantized]}; FOLDER/<name>.safetensors has the batches "<layer>.input.<i>", and
FOLDER/<name>-expected.safetensors "<layer> scale" and, with zero points, "<layer> zero_point" as aihwkit estimates them from these batches; of
searches for a range and its shift also "<layer> other scales" and "<layer> other zero_points", those for the columns in other orders.
`python input_cases.py FOLDER SEED COUNT CASE LAYER`: instead, a line {"scales", "zero_points"} of MORE_ORDERS orders for one layer of one case.
"""
import json
import os
import random
import sys
import warnings

warnings.filterwarnings("ignore")

import torch
from aihwkit.nn.low_precision_conversion import convert_to_quantized
from aihwkit.nn.low_precision_modules.quantized_base_modules import QuantLinear
from aihwkit.nn.low_precision_modules.quantized_input_module import QuantizedInputModule
from aihwkit.simulator.digital_low_precision.range_estimators import OptMethod, RangeEstimators
from aihwkit.simulator.parameters.quantization import (ActivationQuantConfig, QuantizationConfig, QuantizationMap, QuantizedModuleConfig,
                                                       WeightQuantConfig)
from random_maps import as_json, estimator_of
from safetensors.torch import save_file
from torch import nn

ORDERS = 8
MORE_ORDERS = 120
FEATURES = {"block.first": 24, "block.second": 17, "head": 40}


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Module()
        self.block.first = nn.Linear(24, 16)
        self.block.second = nn.Linear(17, 12, bias=False)
        self.head = nn.Linear(40, 8)

    def forward(self, inputs):
        for name, x in inputs.items():
            self.get_submodule(name)(x)


def random_batch(chosen, generator, features):
    shape = chosen.choice(((7, features), (3, 5, features), (1, features)))
    x = torch.randn(shape, generator=generator) * chosen.choice((0.01, 1.0, 30.0))
    return x + chosen.choice((0.0, 0.0, 0.5)) if chosen.random() < 0.8 else x * x.abs()


def is_nested_search(range_estimator, range_estimator_params):
    if range_estimator not in (RangeEstimators.MSE, RangeEstimators.cross_entropy):
        return False
    return range_estimator_params is None or range_estimator_params.range_opt_method == OptMethod.golden_section


def qparams_of(model, made, batches):
    """{layer: (scale, zero point)} after a pass over the batches of each layer."""
    converted = convert_to_quantized(model, made).train()
    with torch.no_grad():
        for layer, inputs in batches.items():
            for x in inputs:
                converted({layer: x})
    found = {}
    for layer in batches:
        module = converted.get_submodule(layer)
        assert isinstance(module, QuantizedInputModule)
        quantizer = module.input_quantizer.activation_quantizer.quantizer
        zero_point = None if quantizer.symmetric else torch.as_tensor(quantizer.zero_point).detach().float().reshape(-1).clone()
        found[layer] = torch.as_tensor(quantizer.scale).detach().float().reshape(-1).clone(), zero_point
    return found


def other_ends(model, made, batches, count=ORDERS):
    """Where the search ends for the same values in other orders, which are summed in other orders: {layer: (scales, zero points)}."""
    generator = torch.Generator().manual_seed(5)
    ends = []
    for _ in range(count):
        orders = {layer: torch.randperm(inputs[0].shape[-1], generator=generator) for layer, inputs in batches.items()}
        ends.append(qparams_of(model, made, {layer: [x[..., orders[layer]] for x in inputs] for layer, inputs in batches.items()}))
    return {layer: [torch.cat(parts) for parts in zip(*(end[layer] for end in ends))] for layer in batches}


def case_of(seed, i):
    """(map, names of layers, settings of the estimator, whether symmetric, {layer: batches})."""
    chosen = random.Random(f"inputs {seed} {i}")
    generator = torch.Generator().manual_seed(chosen.randrange(2**31))
    quant = QuantizationConfig(weight_quant=WeightQuantConfig(n_bits=8), activation_quant=ActivationQuantConfig(n_bits=0))
    made = QuantizationMap(default_qconfig=QuantizationConfig())
    made.module_qconfig_map = {nn.Linear: QuantizedModuleConfig(QuantLinear, quant)}
    names = chosen.sample(list(FEATURES), chosen.randrange(1, 4))
    settings = estimator_of(chosen)
    symmetric = chosen.random() < 0.5
    for name in names:
        made.input_activation_qconfig_map[name] = ActivationQuantConfig(n_bits=8, symmetric=symmetric, **settings)
    batches = {layer: [random_batch(chosen, generator, FEATURES[layer]) for _ in range(chosen.randrange(1, 4))] for layer in names}
    return made, names, settings, symmetric, batches


def print_more_ends(seed, case, layer):
    made, _, _, _, batches = case_of(seed, case)
    scales, zero_points = other_ends(Layers(), made, {layer: batches[layer]}, MORE_ORDERS)[layer]
    print(json.dumps(dict(scales=scales.tolist(), zero_points=zero_points.tolist())), flush=True)


def main(folder, seed, count):
    torch.manual_seed(int(seed))
    model = Layers()
    os.makedirs(os.path.join(folder, "inputs"), exist_ok=True)
    save_file({name: value.clone() for name, value in model.state_dict().items()}, os.path.join(folder, "inputs", "model.safetensors"))
    for i in range(int(count)):
        made, names, settings, symmetric, batches = case_of(seed, i)
        config, name = as_json(made, None), f"inputs-{seed}-{i}"
        expected = {}
        try:
            found = qparams_of(model, made, batches)
        except Exception as error:
            print(json.dumps(dict(name=name, config=config, error=f"{type(error).__name__}: {error}")), flush=True)
            continue
        for layer, (scale, zero_point) in found.items():
            expected[f"{layer} scale"] = scale
            if not symmetric:
                expected[f"{layer} zero_point"] = zero_point
        # Of the range and its shift: one search inside the other, which has many valleys.
        if not symmetric and is_nested_search(**settings):
            for layer, (scales, zero_points) in other_ends(model, made, batches).items():
                expected[f"{layer} other scales"], expected[f"{layer} other zero_points"] = scales, zero_points
        save_file({f"{layer}.input.{k}": x.contiguous() for layer, inputs in batches.items() for k, x in enumerate(inputs)},
                  os.path.join(folder, f"{name}.safetensors"))
        save_file(expected, os.path.join(folder, f"{name}-expected.safetensors"))
        print(json.dumps(dict(name=name, case=i, config=config, estimator=settings["range_estimator"].name, symmetric=symmetric, layers=names)), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 4:
        print_more_ends(sys.argv[2], *sys.argv[4:6])
    else:
        main(*sys.argv[1:])
