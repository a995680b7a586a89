"""onnxruntime and onnxruntime-genai: see runtimes/loaded_cases.py. A folder without an ONNX model is made one by genai's builder."""
from loaded_cases import answer  # isort: skip; first, so that what the others print goes to stderr

import json
import os
import shutil

import numpy as np
import onnx
import onnxruntime
import onnxruntime_genai
import torch
from make_onnx import build
from moved_outputs import DRAWS, factors

GENERATED = 5
# Else what is fused with DequantizeLinear multiplies inputs of eight bits.
ACCURACY = {"session.qdq_matmulnbits_accuracy_level": "0"}


def with_rounded_inputs(path):
    """The model at `path` with the inputs of its MatMul nodes rounded to uint8 and back, as dynamic quantization does; but for the head's."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights and "lm_head" not in node.input[1]:
            codes = [f"{node.output[0]}_{part}" for part in ("codes", "scale", "zero_point")]
            nodes.append(onnx.helper.make_node("DynamicQuantizeLinear", [node.input[0]], codes))
            nodes.append(onnx.helper.make_node("DequantizeLinear", codes, [f"{node.output[0]}_rounded"]))
            node.input[0] = f"{node.output[0]}_rounded"
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)


def write_moved(path, dtype, seed):
    """The model at `path` with each output of its MatMul nodes off by roundings; returns the path of the copy, in the same folder."""
    model = onnx.load(path, load_external_data=False)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    generator = torch.Generator().manual_seed(seed)
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        made, moved = node.output[0], f"{node.output[0]}_moved"
        values = factors(weights[node.input[1]].dims[-1], dtype, generator).numpy().astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, f"{moved}_factors"))
        node.output[0] = moved
        nodes.append(onnx.helper.make_node("Mul", [moved, f"{moved}_factors"], [made]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    target = os.path.join(os.path.dirname(path), "moved.onnx")
    onnx.save(model, target)
    return target


def logits_of(folder, tokens, name="model.onnx"):
    """Outputs of all positions of a prompt, without a past."""
    path = os.path.join(folder, name)
    options = onnxruntime.SessionOptions()
    for key, value in ACCURACY.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ids = np.array([tokens], dtype=np.int64)
    feeds = {}
    for needed in session.get_inputs():
        if needed.name == "input_ids":
            feeds[needed.name] = ids
        elif needed.name == "attention_mask":
            feeds[needed.name] = np.ones_like(ids)
        else:  # keys and values of the past: [batch, heads, 0, width]
            with open(os.path.join(folder, "genai_config.json"), encoding="utf-8") as file:
                decoder = json.load(file)["model"]["decoder"]
            feeds[needed.name] = np.zeros((1, decoder["num_key_value_heads"], 0, decoder["head_size"]), dtype=np.float32)
    return session.run([session.get_outputs()[0].name], feeds)[0][0]


def tokens_of(folder, prompt):
    config = onnxruntime_genai.Config(folder)
    config.overlay(json.dumps({"model": {"decoder": {"session_options": ACCURACY}}}))
    model = onnxruntime_genai.Model(config)
    options = onnxruntime_genai.GeneratorParams(model)
    options.set_search_options(max_length=len(prompt) + GENERATED + 1, min_length=len(prompt) + GENERATED, do_sample=False)
    generator = onnxruntime_genai.Generator(model, options)
    generator.append_tokens(prompt)
    tokens = []
    for _ in range(GENERATED):
        generator.generate_next_token()
        tokens.append(int(generator.get_next_tokens()[0]))
    return tokens


def run(folder, case, is_reference):
    made = None
    path = os.path.join(folder, "model.onnx")
    try:
        if not os.path.exists(path):
            made = f"{folder}-onnx"
            build(folder, made, "fp32" if is_reference else "int4")
            folder, path = made, os.path.join(made, "model.onnx")
        if is_reference and case["inputs"]:
            with_rounded_inputs(path)
        answer = logits_of(folder, case["tokens"]), None if case["isEncoder"] else tokens_of(folder, case["tokens"])
        if not is_reference:
            return answer
        # The runtime computes in float32, even where a checkpoint has 16 bits.
        draws = []
        for seed in range(DRAWS):
            name = os.path.basename(write_moved(path, "float32", seed))
            draws.append(logits_of(folder, case["tokens"], name))
        return *answer, draws
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)


answer(run)
