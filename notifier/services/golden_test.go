package services

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

var update = flag.Bool("update", false, "write the golden files and the catalogue's README anew")

// TestGolden holds what each service sends against testdata/NAME.txt. A case
// of such a file says which URL, which message and what the destination
// answers; below it stands what must come of it:
//
//	url: gotifys://push.example.org/tok3n?priority=high
//	message: plain
//	answer: /message$ 200 {"id": 1}
//	mask: nonce=\w+
//	---
//	gotifys://push.example.org/xxxxx?priority=high
//	delivered
//	POST https://push.example.org/message
//	...
//	===
//
// Answers are tried in their order; a request that none matches gets 200 and
// an empty JSON object. With -update the lower halves are written anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for i, text := range strings.Split(strings.TrimSuffix(string(data), "===\n"), "===\n") {
				top, want, _ := strings.Cut(text, "---\n")
				got := goldenRun(t, top)
				out.WriteString(top + "---\n" + got + "===\n")
				if !*update && got != want {
					t.Errorf("case %d:\n%s--- got\n%s--- want\n%s", i+1, top, got, want)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// recorder answers requests and writes them down.
type recorder struct {
	answers []answer
	masks   []*regexp.Regexp

	mu   sync.Mutex
	seen []string
}

type answer struct {
	match *regexp.Regexp
	code  int
	body  string
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
		if q.ContentLength != int64(len(body)) {
			return nil, fmt.Errorf("the length is stated as %d and is %d", q.ContentLength, len(body))
		}
	}
	line := q.Method + " " + q.URL.String()
	text := show(q, body)
	for _, m := range r.masks {
		text = m.ReplaceAllString(text, "MASKED")
	}
	r.mu.Lock()
	r.seen = append(r.seen, text)
	r.mu.Unlock()
	code, out := 200, "{}"
	for _, a := range r.answers {
		if a.match.MatchString(line) {
			code, out = a.code, a.body
			break
		}
	}
	return &http.Response{
		StatusCode: code, Request: q, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(out)), ContentLength: int64(len(out)),
	}, nil
}

// show writes a request down for people to read and compare.
func show(q *http.Request, body []byte) string {
	var b strings.Builder
	address := *q.URL
	query := address.Query()
	address.RawQuery = ""
	fmt.Fprintf(&b, "%s %s\n", q.Method, address.String())
	for _, k := range slices.Sorted(mapsKeys(query)) {
		for _, v := range query[k] {
			fmt.Fprintf(&b, "  ?%s=%s\n", k, v)
		}
	}
	kind, params, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	boundary := params["boundary"]
	for _, k := range slices.Sorted(mapsKeys(q.Header)) {
		if k == "User-Agent" || len(q.Header[k]) == 0 {
			continue
		}
		for _, v := range q.Header[k] {
			if user, password, ok := q.BasicAuth(); ok && k == "Authorization" {
				v = "Basic(" + user + ", " + password + ")"
			}
			if boundary != "" {
				v = strings.ReplaceAll(v, boundary, "BOUNDARY")
			}
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	if len(body) > 0 {
		b.WriteString("\n")
	}
	var indented bytes.Buffer
	switch {
	case kind == "application/x-www-form-urlencoded":
		form, _ := url.ParseQuery(string(body))
		for _, k := range slices.Sorted(mapsKeys(form)) {
			for _, v := range form[k] {
				fmt.Fprintf(&b, "%s=%s\n", k, v)
			}
		}
	case json.Indent(&indented, body, "", "  ") == nil:
		b.WriteString(indented.String() + "\n")
	default:
		text := string(body)
		if boundary != "" {
			text = strings.ReplaceAll(text, boundary, "BOUNDARY")
		}
		text = strings.ReplaceAll(text, string(pixel), "<graph.png>")
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "?")
		b.WriteString(strings.TrimSuffix(text, "\n"))
		if len(body) > 0 {
			b.WriteString("\n")
		}
	}
	return longRun.ReplaceAllStringFunc(b.String(), func(s string) string {
		return fmt.Sprintf("%s…(%d bytes)…%s", s[:200], len(s), s[len(s)-100:])
	})
}

// longRun is more of one line than anybody reads; its cut stays on ASCII.
var longRun = regexp.MustCompile(`[ -~]{600,}`)

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

var pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// message makes one of the messages that golden files and the tests over the
// whole catalogue send.
func message(t testing.TB, name string) *notifier.Message {
	m := &notifier.Message{
		Title: "Disk almost full",
		Body:  "Volume /data is at 91% on host-7",
		Type:  notifier.Info,
		Time:  time.Date(2026, 3, 1, 12, 30, 15, 0, time.UTC),
		Identity: &notifier.Identity{
			Name: "Caddy", Description: "Caddy Notifications", URL: "https://caddyserver.com/",
			Icon: "https://icons.example.com/{type}-{size}.png", Logo: "https://icons.example.com/logo.png",
		},
	}
	switch name {
	case "plain":
	case "notitle":
		m.Title, m.Body, m.Type = "", "line one <b>&\"quoted\"</b>\nline two: é ü 漢字 ☃ 😀 + % # ?", notifier.Failure
	case "markdown":
		m.Title, m.Type, m.Format = "Deploy *done*", notifier.Warning, notifier.Markdown
		m.Body = "# Release 1.4\n\n- **bold** item\n- a [link](https://example.com/x?a=1&b=2)\n\n`code` and _emphasis_"
	case "html":
		m.Title, m.Type, m.Format = "Backup <ok>", notifier.Success, notifier.HTML
		m.Body = "<h1>Nightly</h1><p>All <b>12</b> volumes &amp; 3 sites<br/>saved</p>"
	case "long":
		for i := range 400 {
			m.Body += fmt.Sprintf(" %04d some words that fill the line", i)
		}
	case "attach":
		m.Title, m.Body = "With files", "see attached"
		m.Attachments = []*notifier.Attachment{
			notifier.NewAttachment("report.txt", "text/plain", []byte("disk report: 91% used\n")),
			notifier.NewAttachment("graph.png", "image/png", pixel),
		}
	default:
		t.Fatalf("no message is called %q", name)
	}
	return m
}

// deliver sends a message to a URL over a recorder.
func deliver(r *recorder, address string, m *notifier.Message) (notifier.Result, error) {
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", r), 0)
	d, err := sender.Parse(address, nil)
	if err != nil {
		return notifier.Result{}, err
	}
	report := sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	slices.Sort(r.seen)
	return report.Results[0], nil
}

// goldenCase reads the upper half of a case.
func goldenCase(t *testing.T, top string) (r *recorder, address, name string) {
	t.Helper()
	r, name = &recorder{}, "plain"
	for _, line := range strings.Split(top, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "url":
			address = value
		case "message":
			name = value
		case "mask":
			r.masks = append(r.masks, regexp.MustCompile(value))
		case "answer":
			f := strings.SplitN(value, " ", 3)
			code, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			r.answers = append(r.answers, answer{regexp.MustCompile(f[0]), code, append(f, "")[2]})
		default:
			if line != "" && !strings.HasPrefix(line, "#") {
				t.Fatalf("what does %q mean?", line)
			}
		}
	}
	return r, address, name
}

func goldenRun(t *testing.T, top string) string {
	t.Helper()
	r, address, name := goldenCase(t, top)
	result, err := deliver(r, address, message(t, name))
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	out := result.Destination + "\n" + string(result.Status)
	if result.Err != nil {
		out += ": " + result.Err.Error()
	}
	return out + "\n" + strings.Join(r.seen, "\n")
}
