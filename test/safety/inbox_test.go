package safety

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

const (
	inboxReader = "reader-of-the-inbox"
	otherReader = "reader-of-another-inbox"
)

// inboxOf is a site with a key that keeps its messages.
func inboxOf(reader string) string {
	return "stateless off\nkey ops {\ninbox 7d\nreader " + reader + "\n}\n"
}

// inboxLines is a stream of an inbox.
type inboxLines struct {
	t *testing.T
	*bufio.Scanner
}

// follow follows an address of an inbox with a secret.
func (g *gateway) follow(path, secret string) *inboxLines { return g.followAs(1, path, secret) }

// followAs is follow by the client at 127.0.0.n.
func (g *gateway) followAs(n byte, path, secret string) *inboxLines {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, n)}}
	resp, err := (&http.Transport{DialContext: from.DialContext}).RoundTrip(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %s", path, resp.Status)
	}
	return &inboxLines{g.t, bufio.NewScanner(resp.Body)}
}

// until reads the stream to a line with a text, and returns its ID.
func (l *inboxLines) until(text string) string {
	l.t.Helper()
	for l.Scan() {
		if strings.Contains(l.Text(), text) {
			var m struct{ ID string }
			if err := json.Unmarshal(l.Bytes(), &m); err != nil {
				l.t.Errorf("%v in %s", err, l.Text())
			}
			return m.ID
		}
	}
	l.t.Fatalf("the stream ends before %q: %v", text, l.Err())
	return ""
}

// inbox returns what a reader sees, and the status.
func (g *gateway) inbox(path, secret string) (int, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	r.Header.Set("Accept", "application/json")
	got := g.ask(r)
	return got.Status, got.Body
}

// TestInbox checks what listeners rely on: a reload ends their streams and they miss
// nothing when they come back, a secret that is revoked reads nothing any more, and what
// was accepted is there after the program was killed.
func TestInbox(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	folder := newFolder(t)
	g := start(t, queueOption(folder, "wait 100ms"), inboxOf(inboxReader))
	l := g.follow("/notify/ops/ntfy/phone/json", inboxReader)
	l.until(`"event":"open"`)
	if got := g.post("/notify/ops", message{"body": "first"}); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	id := l.until(`"message":"first"`)
	g.reload(queueOption(folder, "wait 100ms"), inboxOf("another-reader-of-it"))
	for l.Scan() { // to the end of the stream
		t.Logf("after a reload: %s", l.Text())
	}
	g.client.CloseIdleConnections()
	if got := g.post("/notify/ops", message{"body": "second"}); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if status, _ := g.inbox("/notify/ops/messages", inboxReader); status != http.StatusUnauthorized {
		t.Errorf("a revoked reader gets %d", status)
	}
	l = g.follow("/notify/ops/ntfy/phone/json?since="+id, "another-reader-of-it")
	l.until(`"event":"open"`)
	l.until(`"message":"second"`)
	g.kill()
	g.run()
	// It runs with the first configuration again.
	if status, list := g.inbox("/notify/ops/messages?since="+id, inboxReader); status != http.StatusOK ||
		!strings.Contains(list, `"body":"second"`) || strings.Contains(list, "first") {
		t.Errorf("after a kill: %d %s", status, list)
	}
}

// TestTextsOfInbox checks that the texts of an inbox are readable for its readers and
// nowhere else: neither for readers of another key, in logs, metrics, pages and the admin
// API, nor in the files of the queue.
func TestTextsOfInbox(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	folder := newFolder(t)
	refuses := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	g := start(t, tracing+"\n"+queueOption(folder, "wait 5s"), fmt.Sprintf(`console {
manage boss
}
key ops {
url json://%s/
inbox 7d
reader {env.INBOX_READER}
}
key other {
inbox 1h
reader {env.OTHER_READER}
}`, authority(refuses)), "INBOX_READER="+inboxReader, "OTHER_READER="+otherReader)
	const title, body, name, content = "Qz-title-in-an-inbox", "Qz-body-in-an-inbox", "Qz-file-in-an-inbox", "Qz-content-in-an-inbox"
	got := g.post("/notify/ops", message{"title": title, "body": body, "attach": map[string]any{"base64": []byte(content), "filename": name}})
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Status != http.StatusFailedDependency {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if status, list := g.inbox("/notify/ops/messages", inboxReader); status != http.StatusOK ||
		!strings.Contains(list, title) || !strings.Contains(list, body) ||
		!strings.Contains(list, name) || strings.Contains(list, content) {
		t.Errorf("the reader gets %d %s", status, list)
	}
	readable := map[string]string{"the answer": got.Body, "logs, metrics, pages and the admin API": g.exposed("ops")}
	for _, secret := range []string{"", otherReader} {
		for _, path := range []string{
			"messages", "stream", "ntfy/x/json?poll=1", "ntfy/x/sse?poll=1",
			"ntfy/x/raw?poll=1", "ntfy/x/ws", "ntfy/x/auth",
		} {
			status, text := g.inbox("/notify/ops/"+path, secret)
			if status != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, secret, status)
			}
			readable[path+" with "+secret] = text
		}
	}
	_, readable["the other inbox"] = g.inbox("/notify/other/messages", otherReader)
	_, readable["the state of the message"] = g.inbox("/notify/messages/"+answer.ID, "")
	_, readable["the queue"] = g.get(g.adminURL+"/notify/queue", "text/html")
	_, readable["recent messages"] = g.get(g.adminURL+"/notify/recent", "application/json")
	files := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		readable["the file "+filepath.Base(path)], files = string(data), files+1
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the queue were read: %v", files, err)
	}
	for where, all := range readable {
		for _, text := range []string{title, body, name, content, inboxReader, otherReader} {
			if i := strings.Index(all, text); i >= 0 {
				t.Errorf("%s: %s", where, excerpt(text, all, i, i+len(text)))
			}
		}
	}
}

// TestListenersTakeBoundedMemory checks that 1,000 listeners of ten keys take less than
// 60 MB, and that each gets what comes in. Without CI, there are half as many.
func TestListenersTakeBoundedMemory(t *testing.T) {
	racetest.LeaveToCI(t)
	if racetest.Enabled {
		t.Skip("memory is not measured with the race detector")
	}
	t.Parallel()
	const keys, limit = 10, 60_000_000
	each := amount(full, 100, 50)
	var block strings.Builder
	for i := range keys {
		fmt.Fprintf(&block, "key k%d {\ninbox 7d\nreader %s\n}\n", i, inboxReader)
	}
	g := start(t, queueOption(newFolder(t), "wait 100ms"), "stateless off\n"+block.String())
	g.post("/notify/k0", message{"body": "so that all is loaded"})
	before := g.peak()
	var all [][]*inboxLines
	for i := range keys {
		var lines []*inboxLines
		for range each {
			l := g.followAs(byte(i+1), fmt.Sprintf("/notify/k%d/ntfy/x/json", i), inboxReader) // one client has a share of what may wait
			l.until(`"event":"open"`)
			lines = append(lines, l)
		}
		all = append(all, lines)
	}
	quiet := g.peak() - before
	for i, lines := range all {
		g.post(fmt.Sprintf("/notify/k%d", i), message{"body": "to all"})
		for _, l := range lines {
			l.until(`"message":"to all"`)
		}
	}
	told := g.peak() - before
	t.Logf("%d listeners take %.1f MB, and %.1f MB after a message to each", keys*each, float64(quiet)/1e6, float64(told)/1e6)
	if quiet > limit*int64(keys*each)/1000 {
		t.Errorf("%d listeners take %d MB, want at most %d for 1,000", keys*each, quiet/1e6, limit/1_000_000)
	}
}
