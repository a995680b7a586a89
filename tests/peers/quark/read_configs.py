"""What Quark makes of configs that we wrote: `python read_configs.py FILE`.

FILE has a line a config, {"name", "model", "config": a quantization_config block}. Prints a line for each: {"name", "weights": {layer: spec
as Quark writes it}} of the layers that get one, or {"name", "error"} when Quark does not read it.
"""
import json
import os
import sys
import warnings

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1")
warnings.filterwarnings("ignore")

from applied_specs import applied_specs
from quark.torch.quantization.config.config import QConfig
from tiny_models import MODELS, make_model


def read(models, line):
    name, model = line["name"], line["model"]
    try:
        config = QConfig.from_dict(line["config"])
        weights = {layer: parts["weight"] for layer, parts in applied_specs(models[model], config).items() if parts["weight"]}
    except (AssertionError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return {"name": name, "error": f"{type(error).__name__}: {error}"}
    return {"name": name, "weights": weights}


def main(path):
    models = {name: make_model(name) for name in MODELS}
    with open(path, encoding="utf-8") as file:
        for text in file:
            print(json.dumps(read(models, json.loads(text))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
