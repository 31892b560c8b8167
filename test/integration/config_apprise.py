# Loads each configuration of the standard input with Apprise, and prints its
# entries, and what Apprise makes of the URLs that the gateway found.
import json
import logging
import sys

import apprise
from apprise.config import ConfigBase

logging.disable(logging.CRITICAL)
print(json.dumps(apprise.__version__))
for line in sys.stdin:
    case = json.loads(line)
    parse = ConfigBase.config_parse_yaml if case["format"] == "yaml" else ConfigBase.config_parse_text
    servers, _ = parse(case["content"])
    theirs = [[sorted(str(t).lower() for t in s.tags), s.url()] for s in servers]
    ours = []
    for e in case["entries"]:
        s = apprise.Apprise.instantiate(e["url"])
        ours.append([sorted(set(t.lower() for t in e["tags"])), s.url() if s else "unusable"])
    print(json.dumps({"theirs": sorted(theirs), "ours": sorted(ours)}))
