# Sends each case of the standard input with Apprise, and prints who got a
# message, and whether Apprise considers it sent. A case is a line of JSON.
import json
import logging
import sys

import apprise

logging.disable(logging.CRITICAL)
if tuple(int(n) for n in apprise.__version__.split(".")[:2]) < (1, 11):
    sys.exit("Apprise %s has no numbers in tags; they came with 1.11" % apprise.__version__)

got = []


@apprise.decorators.notify(on="probe")
def probe(body, title, notify_type, *args, meta=None, **kwargs):
    got.append(meta["host"])
    return not meta["host"].startswith("bad")


for line in sys.stdin:
    case = json.loads(line)
    a = apprise.Apprise()
    for d in case["destinations"]:
        a.add("probe://" + d["name"], tag=d["tags"])
        # A service of a decorator does not read these from its URL.
        a.servers[-1].wait, a.servers[-1].optional = 0, d["optional"]
    got.clear()
    tag = [t[0] if len(t) == 1 else tuple(t) for t in case["request"]]
    ok = a.notify(body="x", tag=tag)
    print(json.dumps({"got": sorted(got), "ok": ok}))
