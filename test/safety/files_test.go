package safety

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesOfTheGateway checks that URLs of clients cannot use files of the
// gateway's machine, and that the answer does not depend on whether a file
// exists.
func TestFilesOfTheGateway(t *testing.T) {
	t.Parallel()
	const content = `{"text": "what only the file has"}`
	file := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newRecorder(t)
	g := start(t, "", "key ops {\nurl "+k.url+"\n}\negress {\nallow 127.0.0.1\n}")
	host := strings.TrimPrefix(k.url, "json://")
	host, _, _ = strings.Cut(host, "/")
	for _, format := range []string{
		"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=FILE", "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?template=FILE",
		"workflows://" + host + "/a/b?template=FILE", "fcm://p/device?keyfile=FILE", "vapid://a@b.example/x?keyfile=FILE&subfile=FILE",
		"mailto://a:b@" + host + "/c@d.example?from=a@b.example&mode=insecure&pgppub=FILE",
	} {
		for _, prefix := range []string{"", "file://"} {
			send := func(path string) string {
				r := g.post("/notify", message{"body": "x", "urls": []string{strings.ReplaceAll(format, "FILE", url.QueryEscape(prefix+path))}})
				if r.Status/100 == 2 {
					t.Errorf("%s: the message was sent", format)
				}
				return strings.ReplaceAll(r.text(), path, "")
			}
			there, absent := send(file), send(filepath.Join(filepath.Dir(file), "none.json"))
			if there != absent {
				t.Errorf("%s: the answer for a file is %q, and for none %q", format, there, absent)
			}
			if strings.Contains(there, "only the file has") || strings.Contains(there, "no such file") {
				t.Errorf("%s: %s", format, there)
			}
		}
	}
	for _, attach := range []string{file, "file://" + file, "FILE://" + file} {
		if r := g.post("/notify/ops", message{"body": "x", "attach": attach}); r.Status != 400 {
			t.Errorf("attach=%s: status %d", attach, r.Status)
		}
	}
	if got := k.take(); len(got) > 0 {
		t.Errorf("messages arrived: %q", got)
	}
}
