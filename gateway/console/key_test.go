package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestEditorMistakes checks that a browser whose configuration is not saved gets
// its text back, with every mistake at its line and without secrets beside the
// text.
func TestEditorMistakes(t *testing.T) {
	t.Parallel()
	o := openConfigs()
	o.Saved.MaxKeys = 1
	g := gatewaytest.New(t, o)
	const text = "json://127.0.0.1\n\nt0ken t0ken\nops=nope://t0ken\njson://10.1.2.3/t0ken\nmsteams://t0ken\n"
	page := submit(g, "/add/ops", url.Values{"config": {text}, "format": {"text"}})
	if page.Status != http.StatusBadRequest {
		t.Errorf("status %d, want 400", page.Status)
	}
	for _, want := range []string{
		">\n" + text + "</textarea>", `name="format" value="text" checked`, `action="../add/ops"`, `aria-invalid="true"`, "correct 3 mistakes",
		`<span id="line-3" class="wrong">3</span>`, `<span id="line-4" class="wrong">4</span>`, `<span id="line-6" class="warned">6</span>`,
		`<a href="#line-3" data-line="3">Line 3</a> unknown line`, `<a href="#line-5" data-line="5">Line 5</a> `, "use workflows://",
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page.Body, "t0ken"); n != strings.Count(text, "t0ken") {
		t.Errorf("the page has the secret %d times, want only those in the editor:\n%s", n, page.Body)
	}
	if r := get(g, "/cfg", "application/json"); r.Body != "[]\n" {
		t.Errorf("the saved keys are %s", r.Body)
	}
	// A configuration without mistakes that is not saved stays in the editor, too.
	if r := g.PostForm("/add/other", "urls=json://127.0.0.1"); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	page = submit(g, "/add/ops", url.Values{"config": {"json://127.0.0.1/kept"}})
	if page.Status != http.StatusBadRequest || !strings.Contains(page.Body, "/kept</textarea>") || !strings.Contains(page.Body, "max_keys") {
		t.Errorf("one key too many: %d %s", page.Status, page.Body)
	}
}

// TestCheck checks that a configuration can be checked without saving it, in all
// formats of an answer.
func TestCheck(t *testing.T) { //nolint:tparallel // the end checks that the subtests have saved nothing
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	type mistakes []struct {
		Line int
		Text string
	}
	for name, c := range map[string]struct {
		format, text       string
		urls               int
		mistakes, warnings []int
	}{
		"none":              {"text", "json://127.0.0.1\nops=json://127.0.0.1", 2, []int{}, []int{}},
		"text":              {"text", "t0ken\njson://127.0.0.1\nnope://t0ken", 0, []int{1, 3}, []int{}},
		"YAML":              {"yaml", "urls:\n- t0ken\n- nope://t0ken:\n    tag: a\n- json://127.0.0.1\nurl: x\n", 0, []int{2, 3}, []int{6}},
		"malformed YAML":    {"yaml", "urls:\n - [t0ken\n", 0, []int{2}, []int{}},
		"nothing":           {"text", "# nothing", 0, []int{0}, []int{}},
		"an include":        {"text", "\ninclude http://127.0.0.1/t0ken", 0, []int{2}, []int{}},
		"a retired service": {"text", "msteams://t0ken\njson://127.0.0.1", 1, []int{}, []int{1}},
		"only retired ones": {"text", "msteams://t0ken\n", 0, []int{1}, []int{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, query := range []string{"?check", "?check=local"} {
				body, err := json.Marshal(map[string]string{"format": c.format, "config": c.text})
				if err != nil {
					t.Fatal(err)
				}
				r := g.Post("/add/ops"+query, gatewaytest.TypeJSON, string(body))
				var got struct {
					URLs               int
					Mistakes, Warnings mistakes
				}
				if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Status != http.StatusOK {
					t.Fatalf("%d %s: %v", r.Status, r.Body, err)
				}
				lines := func(m mistakes) []int {
					out := []int{}
					for _, m := range m {
						out = append(out, m.Line)
					}
					return out
				}
				if got.URLs != c.urls || !reflect.DeepEqual(lines(got.Mistakes), c.mistakes) || !reflect.DeepEqual(lines(got.Warnings), c.warnings) ||
					strings.Contains(r.Body, "t0ken") {
					t.Errorf("%s answers %s", query, r.Body)
				}
			}
			page := submit(g, "/add/ops?check", url.Values{"config": {c.text}, "format": {c.format}})
			if page.Status != http.StatusOK || strings.Contains(page.Body, `<p class="outcome">No mistakes`) != (len(c.mistakes) == 0) {
				t.Errorf("the page: %d %s", page.Status, page.Body)
			}
		})
	}
	if r := get(g, "/cfg", "application/json"); r.Body != "[]\n" {
		t.Errorf("a check has saved the keys %s", r.Body)
	}
	r := httptest.NewRequest(http.MethodPost, "/add/ops?check", strings.NewReader("urls=json://127.0.0.1"))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := g.Do(r); got.Status != http.StatusForbidden {
		t.Errorf("a check for a page of another site: %d", got.Status)
	}
}

// TestSaveRetired checks that a configuration with a service that has ended is
// saved, with a warning about what to use instead.
func TestSaveRetired(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs())
	r := g.PostForm("/add/ops", "config=msteams://t0ken%0A"+s.NotifyURL("/a"))
	if r.Status != http.StatusOK || !strings.Contains(r.Body, "line 1: ") || !strings.Contains(r.Body, "workflows://") ||
		strings.Contains(r.Body, "t0ken") {
		t.Errorf("saving gets %d %s", r.Status, r.Body)
	}
	if r := g.PostForm("/notify/ops", "body=x"); r.Status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("a message gets %d %s", r.Status, r.Body)
	}
}
