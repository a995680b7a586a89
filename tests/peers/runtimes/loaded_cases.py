"""What run.py of every runtime shares: cases in, outcomes out.

    python run.py CASES      a case (JSON) a line; prints an outcome (JSON) a line, in the same order

A case: {"name", "folder": what we wrote, "reference": our dequantized weights, "dtype", "inputs": dtype to which a runtime rounds the inputs of the layers
"quantized" as they come or null, "inputGroup": how many share a scale or null, "tokens": prompt, "isEncoder", "isExact": see bounds.mjs}. An
outcome: {"name", "error"} or {"name",
    difference   largest difference of a logit to those of the same runtime with the reference
    sway         the farthest that a logit of the reference moves when outputs of its layers are off by roundings; null where the case is exact
    product      the largest difference of a product of one layer (layer_products.py), as a share of that product; null where a runtime gives none
    size         largest absolute logit of the reference
    tokens, referenceTokens    five tokens, each the most probable, after the prompt; null for encoders}
"""
import gc
import json
import os
import sys

# What runtimes print goes to stderr.
_answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

# Errors of runtimes quote whole configs.
_MAX_ERROR = 1500


def _answer(outcome):
    print(json.dumps(outcome), file=_answers, flush=True)


def _text_of(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_MAX_ERROR]


def _whole(given):
    return (*given, None, None)[:4]


def answer(run):
    """Answers all cases. run(folder, case, is_reference) gives (logits as a float array [positions, classes], tokens or None, of a reference the
    logits of moved_outputs.moved or None, LayerProducts); the last one or two may be left out."""
    references = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    for case in cases:
        case.setdefault("isExact", False)
        key = (case["reference"], case["dtype"], case["inputs"], case["inputGroup"], tuple(case["quantized"]), case["isExact"])
        try:
            logits, tokens, _, products = _whole(run(case["folder"], case, False))
            if key not in references:
                references[key] = _whole(run(case["reference"], case, True))
            expected, expected_tokens, draws, expected_products = references[key]
            if logits.shape != expected.shape:
                raise ValueError(f"logits have shape {logits.shape}, the reference {expected.shape}")
            _answer({"name": case["name"], "difference": float(abs(logits - expected).max()), "size": float(abs(expected).max()),
                     "sway": max(float(abs(draw - expected).max()) for draw in draws) if draws else None,
                     "product": products.difference(expected_products) if products else None,
                     "tokens": tokens, "referenceTokens": expected_tokens})
        except Exception as error:  # whatever a runtime raises is its outcome
            _answer({"name": case["name"], "error": _text_of(error)})
        gc.collect()
