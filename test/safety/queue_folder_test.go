package safety

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueFullDisk fills the disk of the queue. Messages that cannot be stored
// are answered with 503 and Retry-After; messages that are delivered at once
// are still sent, and load balancers are told. When there is room again, the gateway
// accepts messages without a restart. All accepted messages arrive.
func TestQueueFullDisk(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	disk, inside := smallDisk(t, 16)
	if !inside {
		return
	}
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, bytes.Repeat([]byte("x"), 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	slow, fine := newReceiver(t, nil), newReceiver(t, nil)
	slow.silence()
	g := start(t, queueOption(filepath.Join(disk, "queue")),
		"console {\nmanage open\n}\nkey slow {\nurl "+slow.url+"/\n}\nkey fine {\nurl "+fine.url+"/\n}")
	text := strings.Repeat("word ", 2000)
	attachment := message{"base64": bytes.Repeat([]byte("x"), 10<<10), "filename": "f"}
	var accepted []string
	post := func(n int) (int, http.Header, string) {
		m := message{"title": fmt.Sprint(n), "body": text}
		if n%3 == 0 {
			m["attach"] = attachment
		}
		status, header, answer, err := g.tryPost("/notify/slow", m, "Prefer", "respond-async")
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusAccepted {
			accepted = append(accepted, fmt.Sprint(n))
		}
		return status, header, answer
	}
	refused, n := 0, 0
	for ; refused < 20; n++ {
		status, header, answer := post(n)
		switch status {
		case http.StatusAccepted:
			if n > 3000 {
				t.Fatal("the disk does not become full")
			}
		case http.StatusServiceUnavailable:
			refused++
			if header.Get("Retry-After") == "" || strings.Contains(answer, disk) {
				t.Errorf("503 with Retry-After %q: %s", header.Get("Retry-After"), answer)
			}
		default:
			t.Fatalf("message %d: %d %s", n, status, answer)
		}
	}
	full := len(accepted)
	if log := g.log(); !strings.Contains(log, `"level":"error"`) || !strings.Contains(log, "no space left on device") {
		t.Error("the log has no error about the disk")
	}
	if got := g.post("/notify/fine", message{"title": "fine", "body": "x"}); got.Status != http.StatusOK {
		t.Errorf("a message that is delivered at once: %d %s", got.Status, got.text())
	}
	// So far, those with attachments may have been refused only.
	for status := http.StatusAccepted; status == http.StatusAccepted; {
		if n++; n%3 != 0 {
			status, _, _ = post(n)
		}
	}
	if status, text := g.get(g.url+"/notify/status", "*/*"); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "cannot be written") || strings.Contains(text, disk) {
		t.Errorf("/notify/status: %d %s", status, text)
	}
	silence := func() (int, http.Header, string) {
		status, header, answer, err := g.tryPost("/notify/slow/silences",
			message{"for": "1h", "title": "another", "reason": strings.Repeat("x", 200)})
		if err != nil {
			t.Fatal(err)
		}
		return status, header, answer
	}
	if status, header, answer := silence(); status != http.StatusServiceUnavailable ||
		header.Get("Retry-After") == "" || !strings.Contains(answer, "disk is full") ||
		strings.Contains(answer, disk) {
		t.Errorf("a silence on a full disk: %d, Retry-After %q, %s", status, header.Get("Retry-After"), answer)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway accepts messages again", func() bool {
		n++
		status, _, _ := post(n)
		return status == http.StatusAccepted
	})
	for range 20 {
		n++
		if status, _, answer := post(n); status != http.StatusAccepted {
			t.Errorf("with room again: %d %s", status, answer)
		}
	}
	if status, _, answer := silence(); status != http.StatusCreated {
		t.Errorf("a silence with room again: %d, %s", status, answer)
	}
	eventually(t, "/notify/status is 200 again", func() bool {
		status, _ := g.get(g.url+"/notify/status", "*/*")
		return status == http.StatusOK
	})
	slow.release()
	waitArrived(t, func() []string { return slow.missing(accepted) })
	t.Logf("%d messages accepted until the disk was full, %d afterwards", full, len(accepted)-full)
	if arrived, again := slow.count(); arrived != len(accepted) || again > 0 {
		t.Errorf("%d messages were accepted, %d arrived, %d again", len(accepted), arrived, again)
	}
}

// TestQueueSecondProcess starts a second gateway with the folder of a first
// one. The second one ends with an error that names the folder; the first one
// keeps running.
func TestQueueSecondProcess(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	folder, c := newFolder(t), newReceiver(t, nil)
	options, block := queueOption(folder), "key k {\nurl "+c.url+"/\n}"
	first := start(t, options, block)
	second := prepare(t, options, block)
	if text := second.fails(); !strings.Contains(text, folder) || !strings.Contains(text, "used by another process") {
		t.Errorf("the second gateway does not name the folder: %s", text)
	}
	first.queueUp("/notify/k", 1, 1)
	waitArrived(t, func() []string { return c.missing([]string{"1"}) })
	first.kill()
	second.run() // the lock ends with its process
}

// TestQueueLostKey removes the key file of the queue. The gateway does not
// start, and its error tells what to do. After the file is restored, all
// accepted messages arrive.
func TestQueueLostKey(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	folder, c := newFolder(t), newReceiver(t, nil)
	c.silence()
	g := start(t, queueOption(folder), "key k {\nurl "+c.url+"/\n}")
	g.queueUp("/notify/k", 1, 10)
	g.kill()
	key := filepath.Join(folder, "key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	text := g.fails()
	for _, want := range []string{key, "restore the file from a backup", "move the folder away"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error does not have %q: %s", want, text)
		}
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("the gateway has made a new key")
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	c.release()
	g.run()
	waitArrived(t, func() []string { return c.missing(numbers(1, 10)) })
}
