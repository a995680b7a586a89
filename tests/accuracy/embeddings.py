"""embeddings.py FLOAT QUANTIZED SENTENCES: mean-pooled embeddings of a JSON list of sentences by both folders. Prints JSON: mean and
least cosine of an embedding and its quantized form, and Spearman's rank correlation of the similarities of all pairs."""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer, CompressedTensorsConfig

reference, quantized, sentences = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
tokens = AutoTokenizer.from_pretrained(reference)(sentences, padding=True, truncation=True, max_length=128, return_tensors="pt")


def options_of(folder):
    """Packed zero points are read only while all weights are dequantized; inputs that are rounded need the layers as they are."""
    written = json.loads((Path(folder) / "config.json").read_text()).get("quantization_config", {})
    groups = written.get("config_groups", {}).values()
    zero_points = any(not group["weights"]["symmetric"] for group in groups)
    return {"quantization_config": CompressedTensorsConfig(dequantize=True)} if zero_points else {}


def embeddings(folder):
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, **options_of(folder)).eval()
    with torch.no_grad():
        states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1)
    return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def ranks(embedded):
    above = torch.triu_indices(len(embedded), len(embedded), 1)
    return (embedded @ embedded.T)[above[0], above[1]].argsort().argsort().float()


expected, found = embeddings(reference), embeddings(quantized)
cosines = (expected * found).sum(1)
order = torch.corrcoef(torch.stack([ranks(expected), ranks(found)]))[0, 1]
print(json.dumps({"meanCosine": cosines.mean().item(), "leastCosine": cosines.min().item(), "rankCorrelation": order.item()}))
