"""Random QuantizationMaps, and what they are in JSON: fields by name, classes by name."""
import copy
import dataclasses
import enum

from aihwkit.nn.low_precision_modules.conversion_utils import append_default_conversions
from aihwkit.nn.low_precision_modules.quantized_base_modules import QuantConv2d, QuantEmbedding, QuantLayerNorm, QuantLinear
from aihwkit.simulator.digital_low_precision.config_utils import (CrossEntropyEstimatorParams, CurrentMinMaxEstimatorParams,
                                                                  MSEEstimatorParams, RunningMinMaxEstimatorParams)
from aihwkit.simulator.digital_low_precision.range_estimators import OptMethod, RangeEstimators
from aihwkit.simulator.parameters.quantization import (ActivationQuantConfig, QuantizationConfig, QuantizationMap, QuantizedModuleConfig,
                                                       WeightQuantConfig)
from torch import nn

CLASSES = {nn.Linear: QuantLinear, nn.LayerNorm: QuantLayerNorm, nn.Embedding: QuantEmbedding, nn.Conv2d: QuantConv2d}


def parameters(c, estimator):
    if estimator == RangeEstimators.current_minmax:
        return CurrentMinMaxEstimatorParams(percentile=c.choice((None, None, 0.5, 5.0)))
    if estimator == RangeEstimators.running_minmax:
        return RunningMinMaxEstimatorParams(momentum=c.choice((0.5, 0.9)))
    if estimator == RangeEstimators.allminmax:
        return None
    make = MSEEstimatorParams if estimator == RangeEstimators.MSE else CrossEntropyEstimatorParams
    return make(range_opt_method=c.choice(tuple(OptMethod)), num_candidates=c.choice((10, 20)), range_margin=c.choice((0.0, 0.05, 0.5)))


def estimator_of(c):
    estimator = c.choice((RangeEstimators.current_minmax,) * 4 + tuple(RangeEstimators))
    return dict(range_estimator=estimator, range_estimator_params=parameters(c, estimator) if c.random() < 0.7 else None)


def weight_config(c):
    bits = c.choice((2, 3, 4, 5, 6, 7, 8, 8, 9, 12, 15, 0, 1 if c.random() < 0.2 else 4))
    symmetric, per_channel, chosen = c.random() < 0.6, c.random() < 0.5, estimator_of(c)
    if chosen["range_estimator"] in (RangeEstimators.MSE, RangeEstimators.cross_entropy):
        # aihwkit searches in Python: with zero points, two numbers at once.
        bits = min(bits, 4)
        symmetric = symmetric or bits > 3
        if not symmetric or chosen["range_estimator_params"] is None:
            per_channel = False
    return WeightQuantConfig(n_bits=bits, symmetric=symmetric, per_channel=per_channel, **chosen)


def activation_config(c):
    return ActivationQuantConfig(n_bits=c.choice((0, 0, 4, 8)), symmetric=c.random() < 0.5, **estimator_of(c))


def quantization_config(c):
    return QuantizationConfig(activation_quant=activation_config(c), weight_quant=weight_config(c))


def module_config(c, module_class):
    return QuantizedModuleConfig(quantized_module=CLASSES[module_class], module_qconfig=quantization_config(c))


def random_map(c, model):
    """The map as it is applied, and what append_default_conversions was given (None: it was not called)."""
    names = {name: type(module) for name, module in model.named_modules() if name}
    leaves = [name for name, kind in names.items() if kind in CLASSES]
    made = QuantizationMap(default_qconfig=quantization_config(c))
    for kind in c.sample(list(CLASSES), c.randrange(1, 4)):
        made.module_qconfig_map[kind] = module_config(c, kind)
    for name in c.sample(leaves, c.randrange(0, 3)):
        made.instance_qconfig_map[name] = module_config(c, names[name])
    made.input_activation_qconfig_map = {name: activation_config(c) for name in c.sample(leaves, c.randrange(0, 2))}
    made.excluded_modules = c.sample(list(names), c.choice((0, 0, 1, 2))) + (["*.norm"] if c.random() < 0.05 else [])
    given = copy.deepcopy(made) if c.random() < 0.5 else None
    if given:
        append_default_conversions(made)
    return made, given


def plain(value):
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, (ActivationQuantConfig, WeightQuantConfig)):
        members = ["n_bits", "symmetric", "range_estimator", "range_estimator_params"]
        members += ["per_channel"] if isinstance(value, WeightQuantConfig) else []
        return {name: plain(getattr(value, name)) for name in members if getattr(value, name) is not None}
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value) if getattr(value, field.name) is not None}
    if isinstance(value, dict):
        return {plain(key): plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list) else value


def as_json(made, given):
    return {"dialect": "aihwkit", "append_default_conversions": given is not None, **plain(given or made)}
