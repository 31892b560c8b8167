"""Compares the conformance cases that fail with docs/deviations.md.

    deviations.py failing.json docs/deviations.md [judged.json]

Every case that fails must be listed there, and every case that is listed must
fail. With the third file, no case that fails may have been judged wrong; those
that nobody has judged yet are counted.
"""
import json
import os
import re
import sys

failing_file, deviations_file, *judged_file = sys.argv[1:]
with open(failing_file, encoding='utf-8') as f:
    cases = json.load(f)
failing = {c['service'] + ' ' + re.sub(r'^.*[-+]', '', c['id']): c for c in cases}
listed, service = set(), ''
with open(deviations_file, encoding='utf-8') as f:
    for line in f:
        if line.startswith('## '):
            service = line[3:].strip()
        listed |= {service + ' ' + i for i in re.findall(r'`([0-9a-f]{10})`', line)}
wrong = False
for name in sorted(failing.keys() - listed):
    wrong = True
    print('fails and is not listed:', name, failing[name]['url'], failing[name]['differences'][:2])
for name in sorted(listed - failing.keys()):
    wrong = True
    print('is listed and passes:', name)
if judged_file and os.path.exists(judged_file[0]):
    with open(judged_file[0], encoding='utf-8') as f:
        judged = json.load(f)
    for c in cases:
        if judged.get(c['id'], {}).get('verdict', 'right') not in ('right', 'harmless'):
            wrong = True
            print('fails and was judged wrong:', c['id'], c['url'], c['differences'][:2])
    print('%d of the cases that fail are not judged' % sum(c['id'] not in judged for c in cases))
print('%d cases fail; %s' % (len(failing), 'see above' if wrong else 'all of them are listed'))
sys.exit(wrong)
