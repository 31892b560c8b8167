package api

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
)

// part is one part of a multipart form.
type part struct{ name, file, contentType, value string }

func multipartBody(t *testing.T, parts ...part) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.file != "" {
			disposition += fmt.Sprintf("; filename=%q", p.file)
		}
		h.Set("Content-Disposition", disposition)
		if p.contentType != "" {
			h.Set("Content-Type", p.contentType)
		}
		pw, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(pw, p.value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

func TestMultipart(t *testing.T) {
	g := newGateway(t, nil)
	fetched := fileServer(t)
	for name, tt := range map[string]struct {
		query      string
		parts      []part
		title      string
		body, file string
	}{
		"texts": {"", []part{{"body", "", "", "B"}, {"title", "", "text/plain", "T"}}, "T", "B", ""},
		"a file under each name": {"", []part{
			{"body", "", "", "B"}, {"attach", "a.txt", "", "1"}, {"attachment", "b.txt", "", "2"}, {"attachments", "c.txt", "", "3"},
		}, "", "B", "a.txt text/plain 1|b.txt text/plain 2|c.txt text/plain 3"},
		"a file under another name": {"", []part{{"body", "", "", "B"}, {"file01", "a.txt", "text/csv", "1"}}, "", "B", "a.txt text/csv 1"},
		"a file instead of a body":  {"", []part{{"attach", "a.txt", "", "1"}}, "", "", "a.txt text/plain 1"},
		"a picture without a name": {
			"",
			[]part{{"body", "", "", "B"}, {"attach", "", "image/jpeg", "1"}},
			"", "B",
			"attachment.jpg image/jpeg 1",
		},
		"an unused input":           {"", []part{{"body", "", "", "B"}, {"attach", "", "application/octet-stream", ""}}, "", "B", ""},
		"the name without a folder": {"", []part{{"body", "", "", "B"}, {"attach", "../../etc/x.txt", "", "1"}}, "", "B", "x.txt text/plain 1"},
		"mapping":                   {"?:message=body&:subject=title", []part{{"message", "", "", "B"}, {"subject", "", "", "S"}}, "S", "B", ""},
		"query":                     {"?title=Q", []part{{"body", "", "", "B"}}, "Q", "B", ""},
		"payload": {"", []part{
			{"payload", "", "application/json", `{"body":"P","attach":{"base64":"Mg==","filename":"p.txt"}}`},
			{"body", "", "", "B"},
			{"title", "", "", "T"},
			{"attach", "a.txt", "", "1"},
		}, "T", "P", "p.txt text/plain 2|a.txt text/plain 1"},
		"payload as a file":         {"", []part{{"payload", "p.json", "application/json", `{"body":"P"}`}}, "", "P", ""},
		"payload with mapping":      {"?:a.b=body", []part{{"payload", "", "application/json", `{"a":{"b":"P"}}`}}, "", "P", ""},
		"null in payload is absent": {"", []part{{"payload", "", "application/json", `{"body":null}`}, {"body", "", "", "B"}}, "", "B", ""},
		"payload of another type":   {"", []part{{"payload", "", "text/plain", "P"}, {"body", "", "", "B"}}, "", "B", ""},
		"an address among the files": {
			"",
			[]part{{"attach", "", "", fetched.URL + "/f.txt"}, {"attach", "a.txt", "", "1"}},
			"", "",
			"f.txt text/plain fetched|a.txt text/plain 1",
		},
		"a large file, kept on a disk": {
			"",
			[]part{{"attach", "a.bin", "image/png", strings.Repeat("x", 2<<20)}},
			"", "",
			"a.bin image/png " + strings.Repeat("x", 2<<20),
		},
	} {
		contentType, body := multipartBody(t, tt.parts...)
		if got := post(g, "/notify"+tt.query, contentType, body); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		a := g.one(t)
		if a.title != tt.title || a.body != tt.body || a.files != tt.file {
			t.Errorf("%s: got %q %q %.200q", name, a.title, a.body, a.files)
		}
	}
}

func TestBadMultipart(t *testing.T) {
	g := newGateway(t, func(g *gateway) { g.limits.MaxBody, g.limits.MaxFileSize, g.limits.MaxFiles = 1<<10, 100, 2 })
	none := newGateway(t, func(g *gateway) { g.limits.MaxFiles = 0 })
	file := part{"attach", "a.txt", "", "1"}
	text := part{"body", "", "", "B"}
	for name, tt := range map[string]struct {
		g      *gateway
		parts  []part
		status int
		text   string
	}{
		"a file too large": {
			g,
			[]part{{"attach", "a.txt", "", strings.Repeat("x", 101)}},
			413,
			"the attachment a.txt of the form is larger than 100 B",
		},
		"too many files":         {g, []part{file, file, file}, 400, "at most 2"},
		"attachments turned off": {none, []part{text, file}, 400, "turned off"},
		"a text too large":       {g, []part{{"body", "", "", strings.Repeat("x", 1025)}}, 413, "1.0 KiB"},
		"texts together too large": {
			g,
			[]part{{"body", "", "", strings.Repeat("x", 600)}, {"y", "", "", strings.Repeat("x", 600)}},
			413,
			"1.0 KiB",
		},
		"a payload too large": {
			g,
			[]part{{"payload", "", "application/json", `{"body":"` + strings.Repeat("x", 1024) + `"}`}},
			413,
			"1.0 KiB",
		},
		"a picture without a name": {g, []part{{"body", "", "", "\xff\xd8\xff\xe0\x00\x10JFIF"}}, 400, "the text is a file"},
		"a payload that is broken": {g, []part{{"payload", "", "application/json", "{"}}, 400, "JSON"},
		"two payloads": {
			g,
			[]part{{"payload", "", "application/json", "{}"}, {"payload", "", "application/json", "{}"}},
			400,
			"more than one",
		},
		"a payload of the wrong type": {g, []part{{"payload", "", "application/json", `{"body":1}`}}, 400, "the field body is a number"},
		"no body":                     {g, []part{{"title", "", "", "T"}}, 400, "the field body is missing"},
		"a payload without its type": {
			g,
			[]part{{"payload", "", "", `{"body":"P"}`}},
			400,
			"read only if the part has Content-Type: application/json",
		},
		"a text for an address":        {g, []part{text, {"attach", "", "", "nonsense"}}, 400, "the field attach"},
		"base64 for an address":        {g, []part{text, {"attach", "", "", "data:text/plain;base64,eA=="}}, 400, "the field attach"},
		"a file and too many with it ": {g, []part{file, file, {"attach", "", "", "http://127.0.0.1/"}}, 400, "at most 2"},
	} {
		contentType, body := multipartBody(t, tt.parts...)
		got := post(tt.g, "/notify", contentType, body)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", name, got.status, tt.status, tt.text, got.body)
		}
		if n := len(g.take()); n != 0 {
			t.Errorf("%s: %d messages were sent", name, n)
		}
	}
	many := make([]part, maxParts+1)
	for i := range many {
		many[i].name = "x"
	}
	contentType, body := multipartBody(t, many...)
	if got := post(newGateway(t, nil), "/notify", contentType, body); got.status != 400 || !strings.Contains(got.body, "1000 parts") {
		t.Errorf("too many parts: status %d: %s", got.status, got.body)
	}
	contentType, body = multipartBody(t, text)
	for name, broken := range map[string]string{"cut": body[:len(body)-6], "empty parts": "--x", "nothing of it": "body=x"} {
		if got := post(g, "/notify", contentType, broken); got.status != 400 || !strings.Contains(got.body, "multipart") {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
	if got := post(g, "/notify", "multipart/form-data", body); got.status != 400 || !strings.Contains(got.body, "boundary") {
		t.Errorf("no boundary: status %d: %s", got.status, got.body)
	}
	if got := post(g, "/notify", contentType, body+strings.Repeat("x", 2<<20)); got.status != 413 {
		t.Errorf("a request larger than texts, files and parts can be: status %d: %s", got.status, got.body)
	}
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt": "a.txt", "a\u202e\r\n.txt": "a.txt",
		strings.Repeat("x", 200): strings.Repeat("x", 100) + "…",
	} {
		if got := printable(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
