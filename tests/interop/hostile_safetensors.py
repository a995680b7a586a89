"""Files through the safetensors crate's reader: for each, a JSON line with its error, or null."""

import json
import sys

from safetensors import SafetensorError, deserialize

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    try:
        deserialize(data)
        print(json.dumps(None))
    except SafetensorError as error:
        print(json.dumps(str(error)))
