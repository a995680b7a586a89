"""What Quark sets on the modules of a model, and what its documentation says that it would."""
import copy
import fnmatch

from quark.torch import ModelQuantizer
from quark.torch.quantization.model_transformation import LAYER_TO_QUANT_LAYER_MAP
from quark.torch.quantization.nn.modules.mixin import QuantMixin

PARTS = {"weight": "weight_qspec", "bias": "bias_qspec", "input_tensors": "input_qspec", "output_tensors": "output_qspec"}


def quantizable_layers(model):
    """Class names of the modules that Quark looks at, by name."""
    classes = tuple(LAYER_TO_QUANT_LAYER_MAP)
    return {name: type(module).__name__ for name, module in model.named_modules() if type(module) in classes}


def other_modules(model):
    """Class names of the other modules with a matrix of weights: classes of their own, which Quark passes over."""
    known = quantizable_layers(model)
    return {name: type(module).__name__ for name, module in model.named_modules()
            if name not in known and getattr(getattr(module, "weight", None), "ndim", 0) >= 2}


def documented_weights(config, layers):
    """The weight's spec of each layer by the documentation of Quark and ours: an excluded module is excluded with all below it, and a
    config that says nothing about weights lets the next one speak: exact name, first pattern, type, global (not for embeddings)."""
    found = {}
    for name, kind in layers.items():
        excluded = any(name == entry or fnmatch.fnmatchcase(name, entry) or fnmatch.fnmatchcase(name, f"{entry}.*") for entry in config.exclude)
        speaking = [config.layer_quant_config[name]] if name in config.layer_quant_config else []
        patterns = (part for entry, part in config.layer_quant_config.items() if entry != name and fnmatch.fnmatchcase(name, entry))
        speaking += [part for part in [next(patterns, None)] if part]
        speaking += [part for entry, part in config.layer_type_quant_config.items() if entry.__name__ == kind]
        if kind != "Embedding":
            speaking.append(config.global_quant_config)
        found[name] = None if excluded else next((part.weight for part in speaking if part.weight is not None), None)
    return {name: to_json(spec) for name, spec in found.items() if spec is not None}


def to_json(spec):
    if isinstance(spec, list):
        return [stage.to_dict() for stage in spec]
    return spec.to_dict() if spec is not None else None


def applied_specs(model, config):
    """The specs of every layer that gets one, after ModelQuantizer has replaced the modules of a copy of the model; `config` is spent."""
    quantizer = ModelQuantizer(config)
    replaced = quantizer._prepare_model(copy.deepcopy(model))
    return {name: {part: to_json(getattr(module, attribute)) for part, attribute in PARTS.items()}
            for name, module in replaced.named_modules() if isinstance(module, QuantMixin)}
