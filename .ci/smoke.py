"""Sends messages through both endpoints of Caddyfile.example and checks that they appear in the log of its example destination."""
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def post(url, fields, accept='application/json'):
    request = urllib.request.Request(url, urllib.parse.urlencode(fields).encode(), {'Accept': accept})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def check(what, status, text, want):
    print('%s: %d %s' % (what, status, text.strip()[:200]))
    if status != want:
        sys.exit('%s: want %d' % (what, want))


def main():
    for _ in range(100):
        try:
            urllib.request.urlopen('http://127.0.0.1:9000/', timeout=5).close()
            break
        except OSError:
            time.sleep(0.1)
    gateway, prefixed = 'http://127.0.0.1:8080', 'http://127.0.0.1:8081/alerts'
    status, text = post(gateway + '/notify/ops', {'title': 'smoke one', 'body': 'to a key'})
    check('key', status, text, 200)
    if len(json.loads(text)['results']) != 2:
        sys.exit('the key has two destinations')
    check('tag', *post(gateway + '/notify/ops', {'body': 'smoke two', 'tag': 'urgent'}), 200)
    check('stateless', *post(gateway + '/notify', {'body': 'smoke three', 'urls': 'json://127.0.0.1:9000/mine'}), 200)
    check('prefix', *post(prefixed + '/notify/ops', {'body': 'smoke four'}), 200)
    check('prefix, stateless', *post(prefixed + '/notify', {'body': 'x', 'urls': 'json://127.0.0.1:9000/mine'}), 403)
    check('unknown key', *post(gateway + '/notify/nosuch', {'body': 'x'}), 404)
    check('no such tag', *post(gateway + '/notify/ops', {'body': 'x', 'tag': 'nobody'}), 424)
    check('private address', *post(gateway + '/notify', {'body': 'x', 'urls': 'json://10.0.0.1/'}), 424)
    time.sleep(0.5)
    with open(sys.argv[1], encoding='utf-8') as f:
        log = urllib.parse.unquote_plus(f.read())
    for word, want in (('smoke one', 2), ('smoke two', 1), ('smoke three', 1), ('smoke four', 2)):
        if log.count(word) < want:
            sys.exit('the log of the stand-in shows %r %d times, want %d' % (word, log.count(word), want))
    print('every message arrived')


if __name__ == '__main__':
    main()
