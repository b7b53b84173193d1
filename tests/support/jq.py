"""As much of jq as the docs need: `jq -r '.groups[0].id'`."""

import json
import re
import sys

found = json.load(sys.stdin)
for name, place in re.findall(r"\.(\w+)|\[(\d+)\]", sys.argv[1]):
    found = found[name] if name else found[int(place)]
sys.stdout.write(f"{found}\n")
