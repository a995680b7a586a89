"""Configs, and what Quark makes of each: `python config_cases.py FOLDER SEED COUNT`.

Makes FOLDER/<model>/, checkpoints of the models of tiny_models.py, and prints a line {"model", "layers": {name: class}, "others": {name:
class}} for each, then a line a config: {"name", "model", "config": as Quark writes it, "specs": [...], "layers": {name: {part: index of
a spec, or null}}, "documented": {name: index of a spec}}; the last is what applied_specs.documented_weights says.
COUNT configs are random, made from SEED, the others are those of written_configs.py.
"""
import json
import os
import random
import sys
import warnings

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1")
warnings.filterwarnings("ignore")

from applied_specs import applied_specs, documented_weights, other_modules, quantizable_layers
from random_configs import random_config
from tiny_models import MODELS, WITH_CONVOLUTIONS, make_model
from written_configs import written_configs


def say(**line):
    print(json.dumps(line), flush=True)


def say_case(name, model_name, models, config):
    written = config.to_dict()  # before it is applied: Quark then changes it
    specs, indexes = [], {}

    def index_of(spec):
        if spec is None:
            return None
        text = json.dumps(spec, sort_keys=True)
        if text not in indexes:
            indexes[text] = len(specs)
            specs.append(spec)
        return indexes[text]

    documented = documented_weights(config, quantizable_layers(models[model_name]))
    applied = applied_specs(models[model_name], config)
    layers = {layer: {part: index_of(spec) for part, spec in parts.items()} for layer, parts in applied.items()}
    documented = {layer: index_of(spec) for layer, spec in documented.items()}
    say(name=name, model=model_name, config=written, specs=specs, layers=layers, documented=documented)


def say_random_case(name, model_name, models, chosen, names):
    """The first config that Quark can apply: embeddings it quantizes at once, and some specs fail only then."""
    while True:
        config = random_config(chosen, names, groups=model_name not in WITH_CONVOLUTIONS)
        try:
            return say_case(name, model_name, models, config)
        except (AssertionError, NotImplementedError, RuntimeError, ValueError) as error:
            print(f"{name}: {error}", file=sys.stderr)


def main(folder, seed, count):
    models = {name: make_model(name, os.path.join(folder, name)) for name in MODELS}
    names = {name: list(quantizable_layers(model)) for name, model in models.items()}
    for name, model in models.items():
        say(model=name, layers=quantizable_layers(model), others=other_modules(model))
    for name, model_name, make in written_configs():
        say_case(name, model_name, models, make())
    for i in range(int(count)):
        chosen = random.Random(f"{seed} {i}")
        model_name = chosen.choice(list(MODELS))
        say_random_case(f"random {seed} {i}", model_name, models, chosen, names[model_name])


if __name__ == "__main__":
    main(*sys.argv[1:])
