package caddyhttp

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
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\nmax_keys 1", "")
	const text = "json://127.0.0.1\n\nt0ken t0ken\nops=nope://t0ken\njson://10.1.2.3/t0ken\nmsteams://t0ken\n"
	page := submit(t, h, "/add/ops", url.Values{"config": {text}, "format": {"text"}})
	if page.status != http.StatusBadRequest {
		t.Errorf("status %d, want 400", page.status)
	}
	for _, want := range []string{
		">\n" + text + "</textarea>", `name="format" value="text" checked`, `action="../add/ops"`, `aria-invalid="true"`, "correct 3 mistakes",
		`<span id="line-3" class="wrong">3</span>`, `<span id="line-4" class="wrong">4</span>`, `<span id="line-6" class="warned">6</span>`,
		`<a href="#line-3" data-line="3">Line 3</a> unknown line`, `<a href="#line-5" data-line="5">Line 5</a> `, "use workflows://",
	} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page.body, "t0ken"); n != strings.Count(text, "t0ken") {
		t.Errorf("the page has the secret %d times, want only those in the editor:\n%s", n, page.body)
	}
	if r := get(t, h, "/cfg", "application/json"); r.body != "[]\n" {
		t.Errorf("the saved keys are %s", r.body)
	}
	// A configuration without mistakes that is not saved stays in the editor, too.
	if r := post(t, h, "/add/other", typeForm, "urls=json://127.0.0.1"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	page = submit(t, h, "/add/ops", url.Values{"config": {"json://127.0.0.1/kept"}})
	if page.status != http.StatusBadRequest || !strings.Contains(page.body, "/kept</textarea>") || !strings.Contains(page.body, "max_keys") {
		t.Errorf("one key too many: %d %s", page.status, page.body)
	}
}

// TestCheck checks that a configuration can be checked without saving it, in all
// formats of an answer.
func TestCheck(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
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
				r := post(t, h, "/add/ops"+query, typeJSON, string(body))
				var got struct {
					URLs               int
					Mistakes, Warnings mistakes
				}
				if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != http.StatusOK {
					t.Fatalf("%d %s: %v", r.status, r.body, err)
				}
				lines := func(m mistakes) []int {
					out := []int{}
					for _, m := range m {
						out = append(out, m.Line)
					}
					return out
				}
				if got.URLs != c.urls || !reflect.DeepEqual(lines(got.Mistakes), c.mistakes) || !reflect.DeepEqual(lines(got.Warnings), c.warnings) || strings.Contains(r.body, "t0ken") {
					t.Errorf("%s answers %s", query, r.body)
				}
			}
			page := submit(t, h, "/add/ops?check", url.Values{"config": {c.text}, "format": {c.format}})
			if page.status != http.StatusOK || strings.Contains(page.body, `<p class="outcome">No mistakes`) != (len(c.mistakes) == 0) {
				t.Errorf("the page: %d %s", page.status, page.body)
			}
		})
	}
	if r := get(t, h, "/cfg", "application/json"); r.body != "[]\n" {
		t.Errorf("a check has saved the keys %s", r.body)
	}
	r := httptest.NewRequest(http.MethodPost, "/add/ops?check", strings.NewReader("urls=json://127.0.0.1"))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := do(t, h, r); got.status != http.StatusForbidden {
		t.Errorf("a check for a page of another site: %d", got.status)
	}
}

// TestSaveRetired checks that a configuration with a service that has ended is
// saved, with a warning about what to use instead.
func TestSaveRetired(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	r := post(t, h, "/add/ops", typeForm, "config=msteams://t0ken%0A"+s.NotifyURL("/a"))
	if r.status != http.StatusOK || !strings.Contains(r.body, "line 1: ") || !strings.Contains(r.body, "workflows://") || strings.Contains(r.body, "t0ken") {
		t.Errorf("saving gets %d %s", r.status, r.body)
	}
	if r := post(t, h, "/notify/ops", typeForm, "body=x"); r.status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("a message gets %d %s", r.status, r.body)
	}
}
