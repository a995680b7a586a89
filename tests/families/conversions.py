"""What transformers converts while it loads: the rows of src/runtimes/transformers/conversions.def, from the release's own table.

    python3 conversions.py        prints a JSON object: {"version", "rows": [{"kind", "types", "sources", "targets"}...], "stacked": TYPES}

A compressed-tensors file is loaded by the same table. A conversion of tensors called `*.weight` decompresses what it collects, so it matters
whether they are quantized; what a conversion is, its patterns and operations say:
    experts      single experts become one parameter; `sources` are the names of the matrices whose outputs are joined
    joined       other tensors called weight become one, or are rearranged
    split        a tensor called weight becomes several
    rearranged   whatever a module has is split or rearranged, its scales, too
    parameter    a parameter that is no layer's weight becomes several
    unreadable   several tensors become several others, or one gets other values, which the decompression cannot do
`stacked` are the types whose classes hold all experts in one parameter, which no conversion makes of single experts.
"""
import inspect
import json
import os
import re
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")

import torch
import transformers
from transformers import conversion_mapping
from transformers.core_model_loading import WeightConverter

from any_type import classes_of

WEIGHT = ".weight"


def plain(pattern):
    """A pattern as the end of a module's or tensor's name."""
    return re.sub(r"\\(.)", r"\1", pattern).strip("^.")


def type_of(key):
    """The model type of a key of the table, which may be the name of a class."""
    cls = getattr(transformers, key, None)
    if cls is None and key[:1].isupper():
        name = next((module for module in dir(transformers.models) if module.replace("_", "") in key.lower()), "")
        cls = getattr(getattr(transformers.models, name, None), key, None)
    config = getattr(cls, "config_class", None)
    return config.model_type if config is not None else key


def row_of(converter):
    sources, targets = ([plain(pattern) for pattern in patterns] for patterns in
                        (converter._original_source_patterns, converter._original_target_patterns))
    if sources[0].endswith("_weight") and all(target.endswith(WEIGHT) for target in targets):
        return "parameter", sources, [target.removesuffix(WEIGHT) for target in targets]
    if not all(source.endswith(WEIGHT) for source in sources):
        is_module = not any(part in sources[0] for part in ("weight", "bias", "experts", "embedding", "queries"))
        return ("rearranged", sources, targets) if is_module else None
    sources = [source.removesuffix(WEIGHT) for source in sources]
    targets = [target.removesuffix(WEIGHT) for target in targets]
    if len(targets) == 1 and "experts.*." in sources[0]:
        return "experts", [source.rpartition(".")[2] for source in sources], [targets[0].rpartition(".")[2]]
    if sources == targets:  # a tensor of other values under its own name
        return "unreadable", sources, targets
    if len(targets) == 1:
        return "joined", sources, targets
    many = len(sources) > 1 or any(operation.supports_many_to_many for operation in converter.operations)
    return "unreadable" if many else "split", sources, targets


def with_parts(config):
    """The classes of a configuration and of those inside."""
    parts = [part for part in (getattr(config, "sub_configs", None) or {}).values() if getattr(part, "model_type", "")]
    return [config, *(inner for part in parts for inner in with_parts(part))]


def has_stacked_experts(model_type):
    try:
        module = inspect.getmodule(classes_of(model_type)[0])
    except (AttributeError, ValueError):  # no automatic class has it, or the release names one that it lacks
        return False
    if module is None:  # a class that needs another package
        return False
    classes = [cls for name, cls in vars(module).items() if "Expert" in name and inspect.isclass(cls) and issubclass(cls, torch.nn.Module)]
    return any("nn.Parameter(" in inspect.getsource(cls) for cls in classes)


def stacked_types(table):
    """Types of `table` have conversions of single experts."""
    converted = {type_of(key) for key, transforms in table.items() for transform in transforms if isinstance(transform, WeightConverter)
                 and any("experts.*" in plain(pattern) for pattern in transform._original_source_patterns)}
    return [model_type for model_type in sorted(transformers.CONFIG_MAPPING) if has_stacked_experts(model_type)
            and not converted & {config.model_type for config in with_parts(transformers.CONFIG_MAPPING[model_type])}]


def main():
    rows, table = {}, conversion_mapping._build_checkpoint_conversion_mapping()
    for key, transforms in table.items():
        for transform in transforms:
            row = row_of(transform) if isinstance(transform, WeightConverter) else None
            if row:
                kind, sources, targets = row
                rows.setdefault((kind, " ".join(sources), " ".join(targets)), set()).add(type_of(key))
    listed = [{"kind": kind, "types": " ".join(sorted(types)), "sources": sources, "targets": targets}
              for (kind, sources, targets), types in sorted(rows.items())]
    print(json.dumps({"version": transformers.__version__, "rows": listed, "stacked": " ".join(stacked_types(table))}))


if __name__ == "__main__":
    main()
