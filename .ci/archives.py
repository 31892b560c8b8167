"""Checks that each archive of a release has the licenses and the bill of materials of its program, and that this is beside it as a file, too."""
import glob
import json
import os
import sys
import tarfile
import zipfile


def texts(archive):
    """Returns the files in an archive by their names, without the folder."""
    if archive.endswith('.zip'):
        with zipfile.ZipFile(archive) as z:
            return {os.path.basename(n): z.read(n) for n in z.namelist() if not n.endswith('/') and '.exe' not in n}
    with tarfile.open(archive) as t:
        return {os.path.basename(m.name): t.extractfile(m).read() for m in t if m.isfile() and m.size < 20 << 20}


def check(archive, version):
    files = texts(archive)
    for name in ('LICENSE', 'LICENSES.txt', 'sbom.cdx.json'):
        if name not in files:
            sys.exit('%s lacks %s' % (archive, name))
    licenses = files['LICENSES.txt'].decode()
    for want in ('  github.com/caddyserver/caddy/v2 %s: Apache-2.0\n' % version, '  Go go1.', 'Mozilla Public License',
                 '  maunium.net/go/mautrix ', 'Redistribution and use in source and binary forms'):
        if want not in licenses:
            sys.exit('%s: LICENSES.txt lacks %r' % (archive, want))
    bill = json.loads(files['sbom.cdx.json'])
    if bill['bomFormat'] != 'CycloneDX' or bill['metadata']['component']['name'] != 'github.com/caddy-notify/caddy-notify':
        sys.exit('%s: sbom.cdx.json is of %s' % (archive, bill['metadata']))
    parts = {c['name']: c['version'] for c in bill['components']}
    if parts.get('github.com/caddyserver/caddy/v2') != version or 'std' not in parts:
        sys.exit('%s: sbom.cdx.json has %s' % (archive, parts))
    missing = [n for n in parts if n != 'std' and '  %s %s: ' % (n, parts[n]) not in licenses]
    if missing:
        sys.exit('%s: LICENSES.txt lacks %s' % (archive, missing))
    beside = archive.removesuffix('.zip').removesuffix('.tar.gz') + '.cdx.json'
    with open(beside, 'rb') as f:
        if f.read() != files['sbom.cdx.json']:
            sys.exit('%s differs from what is in %s' % (beside, archive))
    print('%s: %d parts, with their licenses' % (os.path.basename(archive), len(parts)))


def main():
    folder, version = sys.argv[1:]
    archives = glob.glob(folder + '/*.zip') + glob.glob(folder + '/*.tar.gz')
    if not archives:
        sys.exit('%s has no archives' % folder)
    for archive in archives:
        check(archive, version)


if __name__ == '__main__':
    main()
