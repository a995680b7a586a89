"""Random configs of a model: who is excluded, which layers have a config of their own, and what all the others get."""
import torch.nn as nn
from quark.torch.quantization.config.config import QConfig, QLayerConfig
from random_specs import activation_spec, weight_spec

LAYER_TYPES = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)


def layer_config(random, groups):
    """Often the weight alone; now and then none, which is what tells the two ways of combining configs apart."""
    parts = {}
    if random.random() < 0.85:
        parts["weight"] = weight_spec(random, groups)
    if random.random() < 0.3:
        parts["input_tensors"] = activation_spec(random)
    if random.random() < 0.1:
        parts["output_tensors"] = activation_spec(random)
    if random.random() < 0.1:
        parts["bias"] = weight_spec(random, groups=False)
    return QLayerConfig(**parts)


def pattern(random, name):
    """A name of a layer, or a pattern made of one."""
    parts = name.split(".")
    kind = random.randrange(9)
    if kind <= 1:
        return name
    if kind == 2:
        return f"*.{parts[-1]}"
    if kind == 3:
        return f"*{parts[-1]}"
    if kind == 4:
        return ".".join(parts[:random.randint(1, len(parts))])  # often a container
    if kind == 5:
        return ".".join(parts[:random.randint(1, len(parts))]) + random.choice((".*", "*"))
    if kind == 6:
        at = random.randrange(len(parts))
        return ".".join([*parts[:at], "*", *parts[at + 1:]])
    if kind == 7:
        return "".join(random.choice(("[01]", "[!0]", "[0-9]", "?")) if letter.isdigit() else letter for letter in name)
    at = random.randrange(len(name))
    return name[:at] + random.choice(("?", "*", f"[{name[at]}x]")) + name[at + 1:]


def random_config(random, names, groups):
    """A QConfig for a model with layers of these names."""
    exclude = [pattern(random, random.choice(names)) for _ in range(random.choice((0, 0, 1, 2, 4)))]
    if random.random() < 0.1:
        exclude.append("no.such.layer")
    layers = {pattern(random, random.choice(names)): layer_config(random, groups) for _ in range(random.choice((0, 1, 2, 3, 5)))}
    types = {kind: layer_config(random, groups and kind is nn.Linear) for kind in random.sample(LAYER_TYPES, random.choice((0, 0, 1, 2)))}
    cache = {"*k_proj": QLayerConfig(output_tensors=activation_spec(random))} if random.random() < 0.04 else {}
    return QConfig(global_quant_config=layer_config(random, groups), exclude=exclude, layer_quant_config=layers, layer_type_quant_config=types,
                   kv_cache_quant_config=cache, kv_cache_post_rope=random.random() < 0.05)
