#!/usr/bin/env bash
# Gemma 3 whose tokens see both sides (use_bidirectional_attention, as in EmbeddingGemma): `sliding_window` of the config object is not what
# config.json says, but half of it and one, a distance that is excluded; saving doubles it again.
# Seen with transformers 5.24.0 (configs only, without torch):
#   made with sliding_window 512: the object says 257, config.json 512; made with 7: the object says 4, config.json 6, so that the key of a
#   folder changes by loading and saving it
#   a config of 512 that is made without the flag, which is then set on the object, as for fine-tuning a decoder into an encoder, sees twice as
#   far as one that is made with both: the object says 512, and config.json 1022
# A guess would be that a key of config.json and the attribute of its name are the same number, and that setting a flag changes no other key.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q transformers==5.24.0 >/dev/null 2>&1

cat >try.py <<'PY'
import json
from pathlib import Path

from transformers import AutoConfig, Gemma3TextConfig

def saved(config, folder):
    config.save_pretrained(folder)
    return json.loads((Path(folder) / 'config.json').read_text())['sliding_window']

for window in (512, 7):
    config = Gemma3TextConfig(sliding_window=window, use_bidirectional_attention=True)
    print('given', window, 'object', config.sliding_window, 'config.json', saved(config, f'made-{window}'))
config = Gemma3TextConfig(sliding_window=512)
config.use_bidirectional_attention = True
print('flag set later: config.json', saved(config, 'later'), 'loaded', AutoConfig.from_pretrained('later').sliding_window)
PY
python/bin/python try.py 2>/dev/null | tee seen

expected='given 512 object 257 config.json 512
given 7 object 4 config.json 6
flag set later: config.json 1022 loaded 512'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
