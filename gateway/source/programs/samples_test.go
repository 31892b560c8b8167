package programs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// sample is a request of a program, from testdata.
type sample struct {
	source string
	path   string // path of its file
	request
}

type request struct {
	body   []byte
	header http.Header
}

// new returns a new Request for a source.
func (r request) new() *source.Request {
	return &source.Request{Header: r.header, Query: url.Values{}, Body: r.body, Time: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
}

// samples returns the requests in testdata. NAME.json has the body, and the optional
// NAME.headers has headers.
func samples(t testing.TB) (out []sample) {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{
			source: filepath.Base(filepath.Dir(file)), path: file,
			request: request{body: body, header: http.Header{"Content-Type": {"application/json"}}},
		}
		if headers, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".headers"); err == nil {
			more, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(headers, '\n')))).ReadMIMEHeader()
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(s.header, http.Header(more))
		}
		out = append(out, s)
	}
	return out
}

// withImages returns a built-in source that attaches images.
func withImages(t testing.TB, name string) *source.Source {
	t.Helper()
	s, err := source.New(source.Config{Name: name, Images: source.Lookup(name).HasImages()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// goldenText returns the message in the format of the golden files.
func goldenText(m *source.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "title: %s\ntype: %s\n", m.Title, m.Type)
	var attach []string
	for _, f := range m.Attach {
		attach = append(attach, strings.TrimSpace(f.URL+" "+f.Name))
	}
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"format", strings.Fields(m.Format)},
		{"dialect", strings.Fields(string(m.Dialect))},
		{"incident", incidents(m)},
		{"tags", m.Tags},
		{"attach", attach},
		{"file", strings.Fields(m.File)},
		{"images", m.Images},
		{"warning", m.Warnings},
	} {
		for _, v := range f.values {
			fmt.Fprintf(&b, "%s: %s\n", f.name, v)
		}
	}
	if m.Skip {
		b.WriteString("skipped\n")
	}
	fmt.Fprintf(&b, "\n%s\n", m.Body)
	return b.String()
}

// incidents returns the incident in a list, which is empty if there is none.
func incidents(m *source.Message) (out []string) {
	if m.Incident != "" {
		out = append(out, m.Incident)
	}
	if m.Acknowledged {
		out = append(out, "(acknowledged)")
	}
	return out
}

// TestSamples checks that every sample makes the message in its golden file, and that
// every format has a sample.
func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, sample := range samples(t) {
		seen[sample.source] = true
		m, err := withImages(t, sample.source).Read(t.Context(), sample.new())
		if err != nil {
			t.Errorf("%s: %v", sample.path, err)
			continue
		}
		golden.Check(t, strings.TrimSuffix(sample.path, ".json")+".golden", goldenText(m))
	}
	for _, f := range source.Formats() {
		if !seen[f.Name] {
			t.Errorf("%s has no sample in testdata/%s", f.Name, f.Name)
		}
		if f.Program == "" || !source.IsAddress(f.Doc) {
			t.Errorf("%s lacks the program's name or the address of the documentation", f.Name)
		}
		if f.Checked != "" && !strings.ContainsAny(f.Checked, "0123456789") {
			t.Errorf("%s: %q is neither a version nor a date", f.Name, f.Checked)
		}
	}
}

// TestTextPayloads checks that a body that is not JSON makes a message if the program
// sends such bodies, and otherwise an error.
func TestTextPayloads(t *testing.T) {
	const header, value = "Content-Type", "text/plain"
	event := http.Header{
		header: {value}, "Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Type": {"net.example.disk"},
		"Ce-Source": {"/hosts/db1"},
	}
	structured := http.Header{header: {"application/cloudevents+json"}}
	for name, tt := range map[string]struct {
		source, body string
		header       http.Header
		want         string // title and body; "" for an error
	}{
		"watchtower, the old generic+https URL": {
			"watchtower", "Found new image\nStopping",
			http.Header{header: {"application/json"}},
			"Watchtower\nFound new image\nStopping",
		},
		"watchtower, text/plain":         {"watchtower", "Found new image", http.Header{header: {value}}, "Watchtower\nFound new image"},
		"an event with a text":           {"cloudevents", "91% full", event, "net.example.disk\n91% full\nSource: /hosts/db1"},
		"an event with XML":              {"cloudevents", "<disk/>", event, "net.example.disk\n<disk/>\nSource: /hosts/db1"},
		"an event with binary data":      {"cloudevents", "\xff\x00", event, "net.example.disk\nSource: /hosts/db1"},
		"an event without data":          {"cloudevents", "", event, "net.example.disk\nSource: /hosts/db1"},
		"an event without a type":        {"cloudevents", "91% full", http.Header{header: {value}}, ""},
		"an incomplete structured event": {"cloudevents", `{"specversion":"1.0","type":"x"`, structured, ""},
		"an empty event":                 {"cloudevents", `{}`, structured, ""},
		"lines of Gatus": {
			"gatus", "endpoint: shop\ngroup: \nstate: TRIGGERED\ndescription: Down: the \"shop\"\nSee the runbook\nerrors: \nconditions: ❌ - " +
				"`[BODY] ({\"a\": 1}) == ok`\n",
			http.Header{header: {value}},
			"shop has failed\nDown: the \"shop\"\nSee the runbook\n❌ - [BODY] ({\"a\": 1}) == ok",
		},
		"lines of Gatus without a type": {
			"gatus", "endpoint: shop\r\nstate: RESOLVED\r\nurl: https://shop.example.net\r\n", nil,
			"shop has recovered\nhttps://shop.example.net",
		},
		"lines without an endpoint":      {"gatus", "state: RESOLVED", nil, ""},
		"a text for Gatus":               {"gatus", "the shop is down", nil, ""},
		"cut JSON of Gatus":              {"gatus", `{"endpoint": "shop`, nil, ""},
		"a program that sends JSON only": {"proxmox", "text", http.Header{header: {value}}, ""},
	} {
		s, err := source.Builtin(tt.source)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Read(t.Context(), request{body: []byte(tt.body), header: tt.header}.new())
		if err != nil {
			if tt.want != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := m.Title + "\n" + m.Body; got != tt.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// hostileVariants returns variants of a payload in which one value is null, of
// another type, very long, or an array of 100,000 items. Only a value of the first
// level whose name is not in seen becomes long, to save time.
func hostileVariants(v any, seen map[string]bool) []any {
	long := make([]any, 10*payload.MaxItems) // as payload.Decode returns it
	for i := range payload.MaxItems {
		long[i] = map[string]any{"status": "firing", "labels": map[string]any{"a": "b"}, "name": "x"}
	}
	types := []any{
		nil, "", "text", "%d%[1]s{{.}}", 0, -1, 1e300, true,
		[]any{},
		[]any{nil, 1, "x", []any{}},
		map[string]any{},
		map[string]any{"": nil},
	}
	replacements := append([]any{strings.Repeat("x", 1<<18), long}, types...)
	out := append([]any(nil), types...)
	if len(seen) == 0 {
		out = append(out, replacements[:2]...)
	}
	first := true
	var walk func(v any, put func(any) any)
	walk = func(v any, put func(any) any) {
		switch v := v.(type) {
		case map[string]any:
			for name := range v {
				with := func(x any) any {
					c := maps.Clone(v)
					c[name] = x
					return put(c)
				}
				some := types
				if first && !seen[name] {
					some, seen[name] = replacements, true
				}
				for _, r := range some {
					out = append(out, with(r))
				}
			}
			first = false
			for name := range v {
				walk(v[name], func(x any) any {
					c := maps.Clone(v)
					c[name] = x
					return put(c)
				})
			}
		case []any:
			if len(v) > 0 {
				walk(v[0], func(x any) any { return put([]any{x}) })
			}
		}
	}
	walk(v, func(x any) any { return x })
	return racetest.Part(out, 16)
}

// TestHostilePayloads checks that a payload with missing fields, wrong types or long
// lists makes a message or an error with a status of 4xx, within the limits of
// templates and payloads.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()
	bySource := map[string][]sample{}
	for _, sample := range samples(t) {
		bySource[sample.source] = append(bySource[sample.source], sample)
	}
	for name, samples := range bySource {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, seen := withImages(t, name), map[string]bool{}
			templates := parseTemplates(t, s.Format)
			for _, sample := range samples {
				data, err := payload.Decode(sample.body)
				if err != nil {
					t.Fatal(err)
				}
				for _, variant := range hostileVariants(data, seen) {
					req := sample.new()
					if s.Format.API != nil || s.Format.Payload != nil {
						req.Body = []byte(payload.Encode(variant))
						check(t, sample.path, s, req)
						continue
					}
					for _, tmpl := range templates {
						if _, err := tmpl.Execute(t.Context(), variant, req.Header); err != nil {
							if e, ok := errors.AsType[*source.TemplateError](err); !ok || e.Line == 0 ||
								!strings.Contains(err.Error(), "the template takes too long") {
								t.Errorf("%s: %.200s: %v", sample.path, payload.Encode(variant), err)
							}
						}
					}
				}
			}
		})
	}
}

// parseTemplates returns the templates of a format.
func parseTemplates(t testing.TB, f *source.Format) (out []*source.Template) {
	t.Helper()
	for _, text := range []string{f.Title, f.Body, f.Type, f.Tag, f.Templates.Format, f.Skip, f.Images} {
		tmpl, err := source.ParseTemplate("template", text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tmpl)
	}
	return out
}

// check checks that a request makes a proper message or an error with a status of 4xx.
func check(t testing.TB, name string, s *source.Source, r *source.Request) {
	t.Helper()
	m, err := s.Read(t.Context(), r)
	if err != nil {
		if e, ok := errors.AsType[*source.Error](err); !ok || e.Status/100 != 4 {
			t.Errorf("%s: %.200s: %v", name, r.Body, err)
		}
		return
	}
	if !m.Skip && strings.TrimSpace(m.Body) == "" && m.File == "" && len(m.Attach) == 0 && r.Files == 0 {
		t.Errorf("%s: %.200s: an empty message", name, r.Body)
	}
	for _, marker := range []string{"<no value>", "map[", "%!", "<nil>"} {
		if strings.Contains(m.Title+m.Body, marker) && !bytes.Contains(r.Body, []byte(marker)) {
			t.Errorf("%s: %.200s: the message has %q: %.300s", name, r.Body, marker, m.Title+"\n"+m.Body)
		}
	}
}

// TestGarbage checks that any other body makes a message or an error with a status of
// 4xx.
func TestGarbage(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"", " ", "null", "true", "0", `""`, `"x"`, "[]", "[1]", "{}", `{"a":`, "{", "\x00", "\xff\xfe", "a=b", "text",
		strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 20_000), `[` + strings.Repeat("0,", 1<<17) + `0]`,
		`{"alerts":[` + strings.Repeat(`{},`, 100_000) + `{}]}`, `{"a":"\ud800"}`,
		`{"alerts":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
		strings.Repeat("a&", 2000), strings.Repeat("=&", 100),
	}
	for _, f := range racetest.Part(source.Formats(), 8) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := withImages(t, f.Name)
			for _, body := range bodies {
				media := []string{"application/json", "application/x-www-form-urlencoded", "text/plain", "", "nonsense"}
				if len(body) > 1<<16 {
					media = media[:1]
				}
				for _, media := range media {
					check(t, f.Name, s, &source.Request{Header: http.Header{"Content-Type": {media}}, Query: url.Values{}, Body: []byte(body)})
				}
			}
			check(t, f.Name, s, &source.Request{Header: http.Header{}, Query: url.Values{"a": {"b"}}, Form: url.Values{"x": {"y"}}})
		})
	}
}

func FuzzRead(f *testing.F) {
	var all []*source.Source
	for _, format := range source.Formats() {
		all = append(all, withImages(f, format.Name))
	}
	for _, s := range samples(f) {
		f.Add(s.body, s.header.Get("Content-Type"), s.header.Get("X-Github-Event"))
	}
	f.Fuzz(func(t *testing.T, body []byte, media, event string) {
		header := http.Header{"Content-Type": {media}}
		if event != "" {
			for _, name := range []string{"Ce-Type", "Ce-Subject", "X-Github-Event", "X-Gitea-Event", "Sentry-Hook-Resource"} {
				header.Set(name, event)
			}
		}
		for _, s := range all {
			check(t, s.Format.Name, s, request{body: body, header: header}.new())
		}
	})
}

// TestAlertsOfGroups checks which alerts are open in a group.
func TestAlertsOfGroups(t *testing.T) {
	for _, name := range []string{"alertmanager", "grafana"} {
		for statuses, want := range map[string][]string{"firing firing": {"f0", "f1"}, "resolved firing": {"f1"}, "resolved resolved": nil} {
			var alerts []string
			for i, status := range strings.Fields(statuses) {
				alerts = append(alerts, fmt.Sprintf(`{"status": %q, "fingerprint": "f%d", "labels": {"alertname": "Down"}, "annotations": {}}`,
					status, i))
			}
			body := `{"version": "4", "status": "firing", "groupKey": "{}", "orgId": 1, "alerts": [` + strings.Join(alerts, ",") + `]}`
			s, err := source.New(source.Config{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Read(t.Context(), request{body: []byte(body)}.new())
			if err != nil {
				t.Fatal(name, err)
			}
			if !slices.Equal(m.Alerts, want) {
				t.Errorf("%s, %s: %q", name, statuses, m.Alerts)
			}
		}
	}
}

// TestPartialPayloads checks that the payload of a group of alerts resolves nothing if it leaves
// some of them out, with the built-in type and with the operator's, and that a complete one does.
func TestPartialPayloads(t *testing.T) {
	for _, f := range source.Formats() {
		if f.Alerts == "" {
			continue
		}
		for left, want := range map[string]string{`"truncatedAlerts": 3`: "info", `"truncatedAlerts": 0`: "success", `"x": 1`: "success"} {
			for _, typ := range []string{"", `{{ .status }}`, `{{ if eq .status "resolved" }}fine{{ end }}`} {
				c := source.Config{Name: f.Name, Templates: source.Templates{Type: typ}, Types: map[string]string{"fine": "success"}}
				s, err := source.New(c)
				if err != nil {
					t.Fatal(err)
				}
				body := `{"version": "4", "status": "resolved", "groupKey": "{}", "orgId": 1, ` + left +
					`, "alerts": [{"status": "resolved", "labels": {"alertname": "Down"}, "annotations": {}}]}`
				m, err := s.Read(t.Context(), request{body: []byte(body)}.new())
				if err != nil || m.Type != want {
					t.Errorf("%s with %s and the type %q: %+v, %v, want %s", f.Name, left, typ, m, err, want)
				}
			}
		}
	}
}

// TestIncidentSamples checks that each format with incidents has samples of an alert that opens one
// and of a message that resolves the same.
func TestIncidentSamples(t *testing.T) {
	opened, resolved := map[string][]string{}, map[string][]string{} // incidents by source
	for _, sample := range samples(t) {
		m, err := withImages(t, sample.source).Read(t.Context(), sample.new())
		if err != nil {
			t.Fatalf("%s: %v", sample.path, err)
		}
		switch m.Type {
		case "failure", "warning":
			opened[sample.source] = append(opened[sample.source], m.Incident)
		case "success":
			resolved[sample.source] = append(resolved[sample.source], m.Incident)
		}
	}
	for _, f := range source.Formats() {
		if f.Incident == "" {
			continue
		}
		if !slices.ContainsFunc(opened[f.Name], func(incident string) bool {
			return incident != "" && slices.Contains(resolved[f.Name], incident)
		}) {
			t.Errorf("%s: no sample resolves what another one opened: opened %q, resolved %q", f.Name, opened[f.Name], resolved[f.Name])
		}
	}
}
