#!/usr/bin/env python3
"""Names and shapes of mixtures of experts as their configuration in transformers has them, which is mostly that of a published model.

    python3 mixture_shapes.py        prints for every type with experts a line of JSON, {"type", "config", "tensors": {name: shape}} or {"type", "error"}

No weight exists: models are made on the device `meta`, and their names are those that `save_pretrained` writes.
"""
import json
import os
import re
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # classes of transformers print

import torch
import transformers
from transformers.core_model_loading import revert_weight_conversion

from any_type import classes_of
from make_families import FAMILIES

# What a type's configuration has no default for: DBRX-instruct's, and one layer of attention in four, about as LFM2-8B-A1B.
WITHOUT_DEFAULTS = {
    "dbrx": dict(d_model=6144, n_heads=48, n_layers=40, vocab_size=100352, attn_config=dict(clip_qkv=8, kv_n_heads=8, rope_theta=500000.0),
                 ffn_config=dict(ffn_hidden_size=10752, moe_num_experts=16, moe_top_k=4)),
    "lfm2_moe": dict(num_hidden_layers=24, layer_types=["conv", "conv", "full_attention", "conv"] * 6),
}
NUMBER_OF_EXPERTS = re.compile(r"^(num|n)_.*experts$|^moe_num_experts$")


def has_experts(config):
    return any((NUMBER_OF_EXPERTS.search(str(name)) and isinstance(value, int) and value > 1) or (isinstance(value, dict) and has_experts(value))
               for name, value in config.items())


def shapes_of(model_type):
    model, error = None, None
    for cls in classes_of(model_type):  # the first that takes the configuration
        try:
            config = transformers.CONFIG_MAPPING[model_type](**WITHOUT_DEFAULTS.get(model_type, {}))
            with torch.device("meta"):
                model = cls(config)
            break
        except (AttributeError, TypeError) as other:
            error = error or other
    if model is None:
        raise error
    tied = set(model.all_tied_weights_keys or ()) if hasattr(model, "all_tied_weights_keys") else set()
    state = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    shapes = {name: list(tensor.shape) for name, tensor in revert_weight_conversion(model, state).items()}
    written = config.to_dict() | {"architectures": [cls.__name__]}
    return {"type": model_type, "config": written, "tensors": shapes}


def main():
    types = sys.argv[1:] or sorted({model_type for _, model_type, *_ in FAMILIES.values()})
    for model_type in types:
        try:
            if not has_experts(transformers.CONFIG_MAPPING[model_type]().to_dict()):
                continue
            line = shapes_of(model_type)
        except Exception as error:  # of a class whose defaults do not make a model
            line = {"type": model_type, "error": f"{type(error).__name__}: {error}".replace("\n", " ")[:200]}
        # Endless limits are no JSON.
        print(json.dumps(line, default=str).replace("Infinity", "1e30"), file=answers, flush=True)


if __name__ == "__main__":
    main()
