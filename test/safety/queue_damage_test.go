package safety

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueFlippedBits flips one bit of the queue's file and starts the
// gateway, 10 times, or 100 times if soak is set. The gateway starts each time,
// and logs each message that does not arrive, with its ID or the hash of its
// idempotency key.
//
// The file has eight messages, so that the gateway reads each of them soon after
// the start.
func TestQueueFlippedBits(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	flips := 10
	if soak {
		flips = 100
	}
	folder, c := newFolder(t), newReceiver(t, nil)
	c.silence()
	g := start(t, queueOption(folder), "timeout 10m\nkey k {\nurl "+c.url+"/\n}")
	const messages = 8
	ids := map[string]string{} // by title
	for _, title := range numbers(1, messages) {
		status, _, text, err := g.tryPost("/notify/k", message{"title": title, "body": strings.Repeat("x", 500)},
			"Prefer", "respond-async", "Idempotency-Key", title)
		m := messageID.FindStringSubmatch(text)
		if err != nil || status != http.StatusAccepted || m == nil {
			t.Fatalf("%d %s %v", status, text, err)
		}
		ids[title] = m[1]
	}
	g.kill()
	db := filepath.Join(folder, "queue.db")
	whole, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	if err := os.CopyFS(files, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	used := usedBytes(whole)
	lost, damaged := 0, 0
	for range flips {
		at := used[rand.IntN(len(used))]
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << rand.IntN(8)
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(folder, os.DirFS(files)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(db, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		before := len(g.log())
		c.reset()
		g.run()
		// Each message arrives, or the log or its address reports that it is lost.
		eventually(t, fmt.Sprintf("all messages have arrived or are lost; bit of byte %d", at), func() bool {
			for title, id := range ids {
				if c.times(title) == 0 && !strings.Contains(g.log()[before:], id) {
					return false
				}
			}
			return true
		})
		g.kill()
		log := g.log()[before:]
		for title := range ids {
			if c.times(title) == 0 {
				lost++
			}
		}
		if strings.Contains(log, "damaged") {
			damaged++
		}
	}
	t.Logf("%d bits flipped, %d times noticed, %d messages lost", flips, damaged, lost)
	if damaged == 0 {
		t.Error("no damage was noticed: the test proves nothing")
	}
	// On average, one flipped bit must not lose more than one message.
	if lost > flips {
		t.Errorf("%d messages are lost", lost)
	}
}

var messageID = regexp.MustCompile(`"id": ?"([0-9a-f-]{36})"`)

// usedBytes returns the positions of the bytes that are not zero.
func usedBytes(b []byte) (used []int) {
	for i, c := range b {
		if c != 0 {
			used = append(used, i)
		}
	}
	return used
}

// reset lets the receiver answer, and forgets the messages that have arrived.
func (c *receiver) reset() {
	c.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = map[string]int{}
}

// TestQueueFiles checks that attachments survive kill -9, and are removed when
// the last delivery has ended. While messages wait, no file contains a text, a
// secret or a URL, and only the owner can read the files.
func TestQueueFiles(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const secret, text, content = "correct-horse-battery", "the reactor is too hot", "a graph of the temperature"
	folder := newFolder(t)
	slow, late := newReceiver(t, nil), newReceiver(t, nil)
	slow.silence()
	late.silence()
	block := fmt.Sprintf("key k {\nurl %s/%s\nurl %s/%[2]s\n}\nstateless on\negress {\nallow 127.0.0.1\n}", slow.url, secret, late.url)
	g := start(t, queueOption(folder), block)
	attachment := message{"base64": bytes.Repeat([]byte(content), 100), "filename": "reactor.txt"}
	const messages = 5
	for _, title := range numbers(1, messages) {
		for path, m := range map[string]message{
			"/notify/k": {"title": title, "body": text, "attach": attachment},
			"/notify":   {"title": "client " + title, "body": text, "urls": slow.url + "/" + secret, "attach": attachment},
		} {
			status, _, answer, err := g.tryPost(path, m, "Prefer", "respond-async", "Idempotency-Key", "idempotent "+title+path)
			if err != nil || status != http.StatusAccepted {
				t.Fatalf("%d %s %v", status, answer, err)
			}
		}
	}
	stored := func() int {
		entries, err := os.ReadDir(filepath.Join(folder, "files"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := stored(); n != 2*messages {
		t.Errorf("%d attachments are stored, want %d", n, 2*messages)
	}
	g.kill()
	for _, plain := range []string{secret, text, content, "reactor.txt", "127.0.0.1", "json://", "idempotent"} {
		notInFiles(t, folder, plain)
	}
	slow.release()
	g.run()
	titles := numbers(1, messages)
	waitArrived(t, func() []string { return slow.missing(titles) })
	if n := stored(); n < messages {
		t.Errorf("%d attachments are stored while %d deliveries wait", n, messages)
	}
	late.release()
	waitArrived(t, func() []string { return late.missing(titles) })
	for _, title := range titles {
		waitArrived(t, func() []string { return slow.missing([]string{"client " + title}) })
	}
	eventually(t, "the attachments are removed", func() bool { return stored() == 0 })
	for _, c := range []*receiver{slow, late} {
		if got := c.file(); got != strings.Repeat(content, 100) {
			t.Errorf("an attachment arrived as %.100q", got)
		}
	}
}

// notInFiles checks that no file or file name in a folder contains a text, and
// that only the owner can read the files.
func notInFiles(t *testing.T, folder, text string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if info.Mode().Perm() != 0o700 {
				t.Errorf("%s has the mode %s", path, info.Mode())
			}
			return nil
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) || strings.Contains(d.Name(), text) {
			t.Errorf("%s contains %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
