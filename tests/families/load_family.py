"""Loads checkpoints that we quantized, with the class that their config.json names, and compares them with the source carrying the dequantized weights.

    python3 load_family.py            a case (JSON) a line on stdin, its outcome (JSON) a line on stdout

A case: {"name", "preset", "source", "inputs", "quantized": NAMES by format, "compressed": FOLDER, "fake": FOLDER, "lines": [PYTHON...]}; formats and lines may
be missing. An outcome: {"name", "compressed": CELL, "fake": CELL, "lines": CELL} with CELL = {"error": TEXT} or
    keys        missing, unexpected or mismatched keys that the source does not have; must be empty
    weights     what differs between the weights of the file and those expected, as text; must be empty
    difference  greatest relative difference of an output to that of the source carrying the dequantized weights
    change      the same to the source as it is, which says that something was quantized
"""
import json
import os
import re
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1", TORCHDYNAMO_DISABLE="1")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # classes of transformers print

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import modeling_utils

from model_outputs import difference, outputs
from stored_weights import HALVES, block_of, decode, differs_from_rounding, read_config, read_tensors, stack_experts

# The loader makes such weights bfloat16 whatever is asked for.
ALWAYS_BFLOAT16 = ("mxfp4-pack-quantized", "nvfp4-pack-quantized", "mxfp8-quantized")
# Modules and parameters whose inputs come first, [in, out]: Conv1D of GPT-2, experts of classes that multiply `x @ W`.
INPUT_MAJOR = {
    "gpt2": r"\.(c_attn|c_proj|c_fc)\.weight$",
    "imagegpt": r"\.(c_attn|c_proj|c_fc)\.weight$",
    "openai-gpt": r"\.(c_attn|c_proj|c_fc)\.weight$",
    "openai_privacy_filter": r"\.experts\.(gate_up|down)_proj$",
    "gpt_oss": r"\.experts\.(gate_up|down)_proj$",
    "llama4": r"\.experts\.(gate_up|down)_proj$",
    "llama4_text": r"\.experts\.(gate_up|down)_proj$",
    "aria": r"\.experts\.fc[12]\.weight$",
    "aria_text": r"\.experts\.fc[12]\.weight$",
    "dbrx": r"\.experts\.mlp\.w2$",
}
KINDS = ("missing_keys", "unexpected_keys", "mismatched_keys")


def keys_of(info):
    return {kind: set(map(str, info[kind] or ())) for kind in KINDS}


def class_of(folder):
    return getattr(transformers, read_config(folder)["architectures"][0])


def load(folder, dtype):
    model, info = class_of(folder).from_pretrained(folder, dtype=dtype, output_loading_info=True)
    return model.eval(), keys_of(info)


def load_state(source, state, dtype):
    """The model of `source` with other weights."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(read_config(source), file)
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        return load(folder, dtype)[0]


def same_tensors(one, other):
    return one.keys() == other.keys() and all(one[name].dtype == tensor.dtype and torch.equal(one[name], tensor) for name, tensor in other.items())


class Source:
    """A checkpoint as it was: weights, keys that its own loading lacks, outputs a dtype."""

    def __init__(self, folder, inputs):
        self.folder = folder
        self.tensors = read_tensors(folder)
        self.inputs = load_file(inputs)
        self.model_type = read_config(folder)["model_type"]
        self.loaded = {}
        self.carried = None

    def outputs_carrying(self, state, dtype, model=None):
        """Outputs of the source with other weights; `model` if it is loaded. Both folders of a case mostly hold the same weights."""
        if self.carried is not None and self.carried[1] == dtype and same_tensors(self.carried[0], state):
            return self.carried[2]
        found = outputs(load_state(self.folder, state, dtype) if model is None else model, self.inputs)
        self.carried = state, dtype, found
        return found

    def keys_and_outputs(self, dtype):
        if dtype not in self.loaded:
            model, keys = load(self.folder, dtype)
            self.loaded[dtype] = keys, outputs(model, self.inputs)
        return self.loaded[dtype]

    def new_keys(self, keys, dtype):
        own = self.keys_and_outputs(dtype)[0]
        return {kind: sorted(names - own[kind])[:5] for kind, names in keys.items() if names - own[kind]}

    def is_input_major(self, name):
        pattern = INPUT_MAJOR.get(self.model_type)
        return pattern is not None and re.search(pattern, name) is not None


def restacked(name):
    """The name of the tensor of several experts that a matrix of one of them is of in the source, for classes that are written one by one."""
    found = re.fullmatch(r"(.*experts)\.\d+\.(\w+)\.weight", name)
    kinds = [kind for kind, rows in HALVES.items() if found and any(found[2] in halves for halves in rows)]
    return f"{found[1]}.{kinds[0]}" if kinds else ""


def problem_of_names(found, quantized):
    quantized = {restacked(name) if restacked(name) in found else name for name in quantized}
    lacking, extra = sorted(set(quantized) - found), sorted(found - set(quantized))
    if lacking:
        return f"{len(lacking)} weights of the report are not quantized in the file: {lacking[0]}"
    return f"{len(extra)} weights are quantized that the report does not name: {extra[0]}" if extra else None


def carried_problem(source, tensors, quantized):
    for name, tensor in source.tensors.items():
        if name in quantized:
            continue
        # Beside weights that load as bfloat16, what the loader converts is written as such.
        own = tensors.get(name)
        if own is None or own.dtype not in (tensor.dtype, torch.bfloat16) or not torch.equal(own, tensor.to(own.dtype)):
            return f"{name} was not carried over as it is"
    return None


def check_loaded(source, found, keys, dtype, expected, weights):
    return {"keys": source.new_keys(keys, dtype), "weights": weights or "", "difference": difference(found, expected),
            "change": difference(found, source.keys_and_outputs(dtype)[1])}


def computes_in_float32(folder, name, dtype):
    """Whether the class has this parameter in float32 in a model of 16 bits, as T5 has `wo`: then the loader decodes it so."""
    cls = class_of(folder)
    kept = set(cls._keep_in_fp32_modules or ()) if dtype == torch.float16 else set()
    if dtype in (torch.float16, torch.bfloat16):
        kept |= set(cls._keep_in_fp32_modules_strict or ())
    return not kept.isdisjoint(name.split("."))


def decoded_of(source, folder):
    """(all tensors of a compressed-tensors folder as the loader has them, decoded; names of the quantized ones)"""
    def is_float32(weight):
        return weight in source.tensors and computes_in_float32(source.folder, weight, source.tensors[weight].dtype)

    decoded, names = stack_experts(*decode(folder, is_float32), source.tensors, source.is_input_major)
    for name in names:
        if not is_float32(name):
            decoded[name] = decoded[name].to(source.tensors[name].dtype)
    return decoded, names


def difference_in_float32(model, reference, inputs):
    """Of a model of 16 bits: some classes go another way with a quantized layer (Jamba subtracts the bias of `dt_proj` from its
    output), which 16 bits show and float32 does not."""
    return difference(*(outputs(torch.nn.Module.float(each), inputs) for each in (model, reference)))


def check_compressed(source, case, decoded, names):
    folder = case["compressed"]
    block = block_of(folder)
    layouts = {block["format"], *(group.get("format") for group in block["config_groups"].values())}
    dtype = torch.bfloat16 if layouts & set(ALWAYS_BFLOAT16) else "auto"
    weights = problem_of_names(names, case["quantized"]["compressed"]) or carried_problem(source, decoded, names)
    reference = load_state(source.folder, decoded, dtype)
    expected = source.outputs_carrying(decoded, dtype, reference)
    model, keys = load(folder, dtype)
    found = outputs(model, source.inputs)
    result = {**check_loaded(source, found, keys, dtype, expected, weights), "outputs": found}
    if model.dtype != torch.float32 and result["difference"] > 0:
        result["difference"] = difference_in_float32(model, reference, source.inputs)
    return result


def check_fake(source, case, decoded):
    """`decoded`: what the compressed-tensors folder of the same run holds; it must hold the same. The rest is rounded here."""
    tensors, quantized = read_tensors(case["fake"]), set(case["quantized"]["fake"])
    changed = {name for name, tensor in source.tensors.items() if name in tensors and not torch.equal(tensors[name], tensor)}
    weights = problem_of_names(changed, quantized) or carried_problem(source, tensors, changed)
    state = dict(source.tensors)
    for name in sorted(changed):
        if name in decoded:
            if not torch.equal(tensors[name], decoded[name].to(tensors[name].dtype)):
                weights = weights or f"{name} is not what the compressed-tensors folder holds"
            state[name] = tensors[name]
            continue
        is_input_major = source.is_input_major(name)
        weight, found = (tensor.mT.contiguous() if is_input_major else tensor for tensor in (source.tensors[name], tensors[name]))
        if case["preset"]:
            problem = differs_from_rounding(found, weight, case["preset"])
            weights = weights or (problem and f"{name}: {problem}")
        state[name] = tensors[name]
    expected = source.outputs_carrying(state, "auto")
    model, keys = load(case["fake"], "auto")
    return check_loaded(source, outputs(model, source.inputs), keys, "auto", expected, weights)


def check_lines(source, case, expected):
    """Runs the printed lines as they are; what they call `model` must be whole and compute the same."""
    reports = []
    report = modeling_utils.log_state_dict_report

    def listen(*args, loading_info, **kwargs):
        reports.append(keys_of(vars(loading_info)))
        return report(*args, loading_info=loading_info, **kwargs)

    modeling_utils.log_state_dict_report = listen
    try:
        names = {}
        exec("\n".join(case["lines"]), names)
    finally:
        modeling_utils.log_state_dict_report = report
    model = names["model"].eval()
    wanted = class_of(case["source"]).__name__
    problem = "" if type(model).__name__ == wanted else f"{type(model).__name__} was loaded, config.json names {wanted}"
    dtype = "auto" if model.dtype == next(iter(source.tensors.values())).dtype else model.dtype
    return check_loaded(source, outputs(model, source.inputs), reports[-1], dtype, expected, problem)


def attempt(check, *args):
    try:
        return check(*args)
    except Exception as error:  # the loader's own words are the finding
        frame = error.__traceback__
        while frame.tb_next:
            frame = frame.tb_next
        place = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        return {"error": f"{type(error).__name__}: {str(error)[:300]} [{place}]"}


def check_case(source, case):
    outcome, decoded = {"name": case["name"]}, {}
    if "compressed" in case:
        found = attempt(decoded_of, source, case["compressed"])
        if isinstance(found, tuple):
            state, names = found
            decoded = {name: state[name] for name in names}
            found = attempt(check_compressed, source, case, state, names)
        expected = found.pop("outputs", [])
        outcome["compressed"] = found
        if "lines" in case:
            outcome["lines"] = attempt(check_lines, source, case, expected)
    if "fake" in case:
        outcome["fake"] = attempt(check_fake, source, case, decoded)
    return outcome


def main():
    torch.set_num_threads(1)
    source = None
    for line in sys.stdin:
        case = json.loads(line)
        if source is None or source.folder != case["source"]:
            source = Source(case["source"], case["inputs"])
        print(json.dumps(check_case(source, case)), file=answers, flush=True)


if __name__ == "__main__":
    main()
