package safety

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestBackUpAndRestore runs the commands of docs/backup.md: it saves Caddy's data folder and the queue of a
// gateway while it runs, restores both for another gateway with other folders, and checks that what waited
// arrives there, that its inbox has the messages, and that its saved keys can be used.
func TestBackUpAndRestore(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	c := newReceiver(t, nil)
	c.silence()
	const site = "egress {\nallow 127.0.0.0/8\n}\nconfigs {\nmanage open\n}\nkey k {\ninbox 7d\nreader a-secret-of-the-reader\nurl "
	old := start(t, "notify {\nqueue\n}", site+c.url+"/\n}")
	resp, err := old.client.PostForm(old.url+"/add/saved", url.Values{"urls": {c.url + "/"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("saving a key: %s", resp.Status)
	}
	old.queueUp("/notify/k", 1, 5)

	backup, folder := t.TempDir(), newFolder(t)
	run := func(command string, paths ...string) {
		t.Helper()
		words := strings.Fields(strings.NewReplacer(append(paths, "/backup", backup)...).Replace(command))
		if words[0] == "caddy" {
			words[0] = program
			words = append(words, "--address", old.admin)
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = old.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	data := func(g *gateway) string { return filepath.Join(filepath.Dir(g.config), "caddy") }
	commands := backupCommands(t)
	run(commands["tar -c -f /backup/data.tar"], "/var/lib/caddy", data(old))
	run(commands["caddy notify queue backup"])
	old.kill() // before the other one runs, as the page says

	restored := prepare(t, queueOption(folder), site+c.url+"/\n}")
	restored.host, restored.port, restored.url = old.host, old.port, old.url // an inbox belongs to the address of its site
	restored.configure(queueOption(folder), site+c.url+"/\n}")
	for _, dir := range []string{data(restored), folder} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run(commands["tar -x -f /backup/data.tar"], "/var/lib/caddy", data(restored))
	run(commands["tar -x -f /backup/queue.tar"], "/var/lib/caddy/notify-queue", folder)
	if _, err := os.Stat(filepath.Join(data(restored), "notify/queue")); !os.IsNotExist(err) {
		t.Errorf("the copy of the data folder has the queue, too: %v", err)
	}
	c.release()
	restored.run()
	waitArrived(t, func() []string { return c.missing(numbers(1, 5)) })
	if status, text := restored.get(restored.url+"/notify/k/messages?token=a-secret-of-the-reader",
		"application/json"); status != http.StatusOK || strings.Count(text, `"title"`) != 5 {
		t.Errorf("the inbox: %d %s", status, text)
	}
	if r := restored.post("/notify/saved", message{"title": "to the saved key", "body": "x"}); r.Status != http.StatusOK {
		t.Errorf("the saved key: %d %s", r.Status, r.text())
	}
	if c.times("to the saved key") != 1 {
		t.Error("the message to the saved key did not arrive")
	}
}

// backupCommands returns the command lines of docs/backup.md by how they begin.
func backupCommands(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, prefix := range []string{
		"tar -c -f /backup/data.tar", "tar -x -f /backup/data.tar",
		"caddy notify queue backup", "tar -x -f /backup/queue.tar",
	} {
		for line := range strings.Lines(string(page)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, prefix) {
				found[prefix] = line
			}
		}
		if found[prefix] == "" {
			t.Fatalf("docs/backup.md has no command that begins with %q", prefix)
		}
	}
	return found
}
