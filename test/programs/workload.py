"""In a python3 that knows nothing of Karst: the traced _json of the directory in argv[1] in place of the stock one."""
import importlib.util
import sys
from pathlib import Path

found = next(Path(sys.argv[1]).glob("_json*.so"))
spec = importlib.util.spec_from_file_location("_json", found)
module = importlib.util.module_from_spec(spec)
sys.modules["_json"] = module
spec.loader.exec_module(module)

import json  # noqa: E402

assert json.decoder.scanstring is module.scanstring
value = {"numbers": list(range(200)), "floats": [i / 7 for i in range(100)], "text": "\u00e4\n\"" * 50,
         "nested": [{"key %d" % i: [None, True, False, {"deep": "x" * i}]} for i in range(50)]}
for _ in range(20):
    text = json.dumps(value)
    assert json.loads(text) == value
for broken in ("[1,", "{\"a\" 1}", "\"\\x\"", "nul"):
    try:
        json.loads(broken)
        raise SystemExit("accepted " + broken)
    except json.JSONDecodeError:
        pass
