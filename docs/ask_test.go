package docs_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestAsk drives what docs/ask.md shows, with its Caddyfile: a shell on the server, a script, a
// step of GitHub Actions and an agent ask, a person answers with the link of the message, and
// each of them goes on.
func TestAsk(t *testing.T) {
	p := readPage(t, "docs/ask.md")
	byLanguage := map[string][]string{}
	for _, b := range p.blocks {
		byLanguage[b.language] = append(byLanguage[b.language], b.text)
	}
	config, commands, step, agent := byLanguage["caddyfile"][0], byLanguage["text"], byLanguage["yaml"][0], byLanguage["json"][0]

	links := make(chan string, 10)
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			AnswerURL string `json:"answer_url"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		links <- m.AnswerURL
	}))
	t.Cleanup(chat.Close)
	g := &gateway{dir: t.TempDir(), client: &http.Client{Timeout: time.Minute}}
	address, admin := porttest.Address(), "localhost:"+porttest.Free()
	const token = "token-of-the-page"
	config = strings.NewReplacer(
		"{env.DISCORD_URL}", strings.Replace(chat.URL, "http", "json", 1), "{env.OPS_TOKEN}", token,
		"https://alerts.example.com", "http://"+address, "alerts.example.com {", "http://"+address+" {",
	).Replace(config)
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, strings.Replace(config, "{\n", "{\n\tadmin "+admin+"\n", 1))
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	answer := func(text string) {
		t.Helper()
		select {
		case link := <-links:
			resp, err := g.client.PostForm(link, url.Values{"answer": {text}, "by": {"Ann"}})
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("answering at %q: %v %v", link, resp, err)
			}
			_ = resp.Body.Close()
		case <-time.After(time.Minute):
			t.Fatal("nobody was asked")
		}
	}

	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "deploy"), []byte("#!/bin/sh\necho deployed\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "caddy")); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ script, answer, out string }{
		"on the server":        {strings.Replace(commands[0], "--key", "--address "+admin+" --key", 1), "deploy", "deployed"},
		"another answer there": {strings.Replace(commands[0], "--key", "--address "+admin+" --key", 1), "wait", "wait"},
		"a script":             {commands[1], "deploy", "deployed"},
		"another answer":       {commands[1], "wait", ""},
	} {
		c := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(x.script, "https://alerts.example.com", "http://"+address))
		c.Dir = bin
		c.Env = append(g.environment(), "OPS_TOKEN="+token, "PATH="+bin+":"+os.Getenv("PATH"))
		done := make(chan string, 1)
		go func() {
			out, _ := c.CombinedOutput() // the exit code says which answer it is
			done <- string(out)
		}()
		answer(x.answer)
		if out := <-done; !strings.Contains(out, x.out) ||
			x.out != "deployed" && strings.Contains(out, "deployed") || x.out == "" && out != "" ||
			strings.Contains(out, "/notify/asks/") {
			t.Errorf("%s: %q, want %q", name, out, x.out)
		}
	}

	var steps []struct {
		Uses string
		With map[string]string
	}
	if err := yaml.Unmarshal([]byte(step), &steps); err != nil || !strings.HasPrefix(steps[0].Uses, "caddy-notify/caddy-notify@v") {
		t.Fatalf("%v, %+v", err, steps)
	}
	inputs := steps[0].With
	for name, value := range inputs {
		inputs[name] = strings.NewReplacer("${{ secrets.OPS_TOKEN }}", token, "${{ github.ref_name }}", "1.4",
			"${{ github.repository }}", "shop", "https://alerts.example.com", "http://"+address).Replace(value)
	}
	for _, text := range []string{"release", "stop"} {
		done := make(chan bool, 1)
		go func() {
			_, printed, ok := readAction(t).run(t.Context(), t, bin, inputs)
			if strings.Contains(printed, "/notify/asks/") {
				t.Errorf("the step of GitHub Actions shows the link: %s", printed)
			}
			done <- ok
		}()
		answer(text)
		if ok := <-done; ok != (text == "release") {
			t.Errorf("GitHub Actions goes on after the answer %s: %t", text, ok)
		}
	}

	var servers struct {
		Servers map[string]struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(agent), &servers); err != nil {
		t.Fatal(err)
	}
	s := servers.Servers["people"]
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: strings.Replace(s.URL, "https://alerts.example.com", "http://"+address, 1), DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: authorized(strings.ReplaceAll(s.Headers["Authorization"], "${OPS_TOKEN}", token))},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	done := make(chan *sdk.CallToolResult, 1)
	go func() {
		got, err := session.CallTool(context.Background(), &sdk.CallToolParams{
			Name: "ask", Arguments: map[string]any{"question": "Delete it?", "options": []string{"delete", "keep"}},
		})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	answer("keep")
	got, _ := json.Marshal(<-done)
	if !strings.Contains(string(got), `"answer":"keep"`) || strings.Contains(string(got), "/notify/asks/") {
		t.Errorf("the agent got %s", got)
	}
}

// authorized sends requests with a header Authorization.
type authorized string

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}
