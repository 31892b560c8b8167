"""Compares the conformance cases that fail with .ci/deviations.txt.

    deviations.py failing.json docs/deviations.md [judged.json]

Every case that fails must be listed there, and every case that is listed must
fail. The page must have a row for each service of the list. With the third file,
no case that fails may have been judged wrong; those that nobody has judged yet
are counted.
"""
import json
import os
import re
import sys

failing_file, deviations_file, *judged_file = sys.argv[1:]
with open(failing_file, encoding='utf-8') as f:
    cases = json.load(f)
failing = {c['service'] + ' ' + re.sub(r'^.*[-+]', '', c['id']): c for c in cases}
listed = set()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'deviations.txt'), encoding='utf-8') as f:
    for line in f:
        service, *ids = line.split()
        if service != '#':
            listed |= {service + ' ' + i for i in ids}
with open(deviations_file, encoding='utf-8') as f:
    explained = {name.strip() for line in f for name in line.split('|')[1:2] for name in name.split(',')}
wrong = False
for service in sorted({name.split()[0] for name in listed} - explained):
    wrong = True
    print('%s has no row in %s' % (service, deviations_file))
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
