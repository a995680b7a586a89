"""The files of an output folder: its index, its config.json, and what it takes along from the source's folder."""
import glob
import json
import os

from stored import read_config, read_header

# Written anew for the output.
OWN = ("config.json", "model.safetensors.index.json", "quantize_config.json", "quant_config.json", "hf_quant_config.json", "recipe.yaml")
# Of the model's values, which may be stored with another dtype.
CHANGED = ("quantization_config", "dtype", "torch_dtype", "tie_word_embeddings")


def all_files(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)


def weight_files(folder):
    return [os.path.basename(path) for path in glob.glob(os.path.join(folder, "*.safetensors"))]


def false_index(folder):
    headers = {name: read_header(os.path.join(folder, name)) for name in weight_files(folder)}
    path = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(path):
        if list(headers) != ["model.safetensors"]:
            yield f"{sorted(headers)} have no index"
        return
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    places = {name: file for file, header in headers.items() for name in header}
    told = index["weight_map"]
    for name in places.keys() | told.keys():
        if places.get(name) != told.get(name):
            yield f"the index says that {name} is in {told.get(name)}; it is in {places.get(name)}"
    total = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for header in headers.values() for entry in header.values())
    if index["metadata"]["total_size"] != total:
        yield f"the index says that tensors have {index['metadata']['total_size']} bytes; they have {total}"


def false_config(source, output):
    before, after = read_config(source), read_config(output)
    for key in before.keys() | after.keys():
        if key not in CHANGED and before.get(key) != after.get(key):
            yield f"config.json says {key} {after.get(key)}, the source's {before.get(key)}"


def false_companions(source, output):
    for name in all_files(source):
        if name in OWN or name.endswith(".safetensors"):
            continue
        path = os.path.join(output, name)
        if not os.path.exists(path):
            yield f"{name} is not in the output"
            continue
        with open(os.path.join(source, name), "rb") as left, open(path, "rb") as right:
            if left.read() != right.read():
                yield f"{name} is not what it was"
    for name in set(all_files(output)) - set(all_files(source)):
        if name not in OWN and not name.endswith(".safetensors"):
            yield f"{name} is in the output and not in the source"


def problems(source, output):
    yield from false_index(output)
    yield from false_config(source, output)
    yield from false_companions(source, output)
