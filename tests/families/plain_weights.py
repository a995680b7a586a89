"""Which model types read the weight of a linear layer while transformers loads them, against the rows of src/runtimes/transformers/plain_weights.def.

    python3 plain_weights.py [--part N OF | TYPE...]     prints a line for each row that the release does not need or lacks; exit code 1 when there are any

A packed layer has no tensor called `weight`. Every class of a type is made small, without data, the weights of its linear layers are taken away, and
`_init_weights` is asked for every module, as the loader does. Types whose classes cannot be made from their defaults, or alone, are passed over.
"""
import os
import re
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # classes of transformers print

import torch
import transformers
from transformers import PreTrainedModel

from any_type import classes_of, config_of

ROWS = Path(__file__).parents[2] / "src/runtimes/transformers/plain_weights.def"
ROW = re.compile(r'WASMQUANT_PLAIN_WEIGHT\(((?:\s*"[^"]*")+),\s*"([^"]*)"\)')
# Conv1D of GPT-2 is no nn.Linear, and no plan packs it.
NOT_LINEAR = {"gpt2"}
# Left by default, as src/runtimes/transformers/default_exclusions.def says.
ROUTERS = {"router", "gate"}


def rows():
    """{type: parts}, a part "" being every layer."""
    parts = {}
    for types, part in ROW.findall(ROWS.read_text(encoding="utf-8")):
        for model_type in " ".join(re.findall(r'"([^"]*)"', types)).split():
            parts.setdefault(model_type, set()).add(part)
    return parts


def modules_of(module, owner, name=""):
    """Each module with the model that initializes it: the nearest above."""
    for child_name, child in module.named_children():
        yield from modules_of(child, child if isinstance(child, PreTrainedModel) else owner, f"{name}.{child_name}".lstrip("."))
    yield module, owner, name


def read_modules(cls, config):
    """Modules for which a weight that is not there is read: (type of the model that reads, name, components of the layers that it may be)."""
    with torch.device("meta"):
        model = cls(config)
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            del module.weight
    for module, owner, name in modules_of(model, model):
        try:
            owner._init_weights(module)
        except AttributeError as error:
            if "has no attribute 'weight'" not in str(error):
                raise
            children = {layer.rpartition(".")[2] for layer in linear if layer.rpartition(".")[0] == name}
            yield owner.config.model_type, name, {*name.split("."), *children}


def read_by(model_type):
    """What the classes of a type that can be made read, and whether all can."""
    try:
        classes = dict.fromkeys(classes_of(model_type))
    except (AttributeError, ValueError):
        return [], False
    found, are_all_made = [], True
    for cls in classes:
        try:
            found += read_modules(cls, config_of(model_type))
        except Exception:  # of a class that does not take the small configuration
            are_all_made = False
    return found, are_all_made


def asked_types(arguments):
    """Types of the command line, every OF-th from N on, or all."""
    types = sorted(transformers.CONFIG_MAPPING)
    if arguments[:1] == ["--part"]:
        return types[int(arguments[1])::int(arguments[2])]
    return arguments or types


def main():
    known, problems = rows(), 0
    for model_type in asked_types(sys.argv[1:]):
        read, are_all_made = read_by(model_type)
        if model_type in NOT_LINEAR:
            continue
        if model_type in known and are_all_made and not read:
            problems += 1
            print(f"{model_type}: a row has it, and no class reads a weight", file=answers, flush=True)
        # Parts of other types have rows of their own.
        open_ones = {name for owner, name, words in read
                     if not (known.get(owner, set()) | known.get(model_type, set())) & {"", *words} and not words & ROUTERS}
        if open_ones:
            problems += 1
            print(f"{model_type}: no row has {', '.join(sorted(open_ones)[:4])}", file=answers, flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
