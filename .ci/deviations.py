"""Says whether every conformance case that fails is listed in DEVIATIONS.md, and every case listed there still fails."""
import json
import re
import sys

with open(sys.argv[1], encoding='utf-8') as f:
    failing = {c['service'] + ' ' + re.sub(r'^.*[-+]', '', c['id']): c for c in json.load(f)}
listed, service = set(), ''
with open(sys.argv[2], encoding='utf-8') as f:
    for line in f:
        if line.startswith('## '):
            service = line[3:].strip()
        listed |= {service + ' ' + i for i in re.findall(r'`([0-9a-f]{10})`', line)}
for name in sorted(failing.keys() - listed):
    print('fails and is not listed:', name, failing[name]['url'], failing[name]['differences'][:2])
for name in sorted(listed - failing.keys()):
    print('is listed and passes:', name)
print('%d cases fail, all of them listed' % len(failing) if failing.keys() <= listed else 'unlisted failures')
sys.exit(failing.keys() != listed)
