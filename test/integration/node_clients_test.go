package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNodeClients sends messages and files with Slack's SDK for Node and with discord.js, which
// are in the folder that NODE_CLIENTS names. A refusal that the SDK repeats would end with the
// context, because the SDK goes on for half an hour.
func TestNodeClients(t *testing.T) {
	folder := os.Getenv("NODE_CLIENTS")
	if folder == "" {
		t.Skip("NODE_CLIENTS names no folder with @slack/web-api and discord.js")
	}
	hook := newWebhook(t)
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		key ops {
			url %s
		}
		key gone {
			url %s
		}
		from slack {
			token secret
		}
		from discord {
			token secret
		}
	}
}
http://127.0.0.1:%d {
	notify
}
`, hook.to("/hook"), "json://"+strings.TrimPrefix(gone.URL, "http://"), port))
	script, err := filepath.Abs("node_clients.cjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "node", "nodejs"), script, folder, fmt.Sprintf("127.0.0.1:%d", port))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, said.String())
	}
	const want = `sent: true
wrong token: invalid_auth
unknown method: unknown_method
no text: no_text
refused: fatal_error
file: true
discord: look`
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var arrived []string
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for _, p := range hook.got {
		text := p.Message
		for _, a := range p.Attachments {
			text += " " + a.Filename
		}
		arrived = append(arrived, text)
	}
	all := "look"
	for i := range 10 {
		all += fmt.Sprintf(" g%d.txt", i)
	}
	if want := []string{"91% full", "graph.txt graph.txt", "see", all}; !slices.Equal(arrived, want) {
		t.Errorf("arrived %q, want %q", arrived, want)
	}
}
