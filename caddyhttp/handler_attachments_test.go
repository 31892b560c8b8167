package caddyhttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
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

// files describes what has arrived: name, type and content of each file.
func (a arrived) files() string {
	var out []string
	for _, f := range a.Attachments {
		out = append(out, fmt.Sprintf("%s %s %s", f.Filename, f.Mimetype, f.Base64))
	}
	return strings.Join(out, "|")
}

func TestMultipart(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/"), "")
	fetched := fileServer(t)
	fetches := newGateway(t, open+"default_urls "+s.url("/"), "")
	for name, tt := range map[string]struct {
		h          *Handler
		query      string
		parts      []part
		title      string
		body, file string
	}{
		"texts": {h, "", []part{{"body", "", "", "B"}, {"title", "", "text/plain", "T"}}, "T", "B", ""},
		"a file under each name": {h, "", []part{
			{"body", "", "", "B"}, {"attach", "a.txt", "", "1"}, {"attachment", "b.txt", "", "2"}, {"attachments", "c.txt", "", "3"},
		}, "", "B", "a.txt text/plain 1|b.txt text/plain 2|c.txt text/plain 3"},
		"a file under another name": {h, "", []part{{"body", "", "", "B"}, {"file01", "a.txt", "text/csv", "1"}}, "", "B", "a.txt text/csv 1"},
		"a file instead of a body":  {h, "", []part{{"attach", "a.txt", "", "1"}}, "", "", "a.txt text/plain 1"},
		"an unused input":           {h, "", []part{{"body", "", "", "B"}, {"attach", "", "application/octet-stream", ""}}, "", "B", ""},
		"the name without a folder": {h, "", []part{{"body", "", "", "B"}, {"attach", "../../etc/x.txt", "", "1"}}, "", "B", "x.txt text/plain 1"},
		"mapping":                   {h, "?:message=body&:subject=title", []part{{"message", "", "", "B"}, {"subject", "", "", "S"}}, "S", "B", ""},
		"query":                     {h, "?title=Q", []part{{"body", "", "", "B"}}, "Q", "B", ""},
		"payload": {h, "", []part{
			{"payload", "", "application/json", `{"body":"P","attach":{"base64":"Mg==","filename":"p.txt"}}`},
			{"body", "", "", "B"}, {"title", "", "", "T"}, {"attach", "a.txt", "", "1"},
		}, "T", "P", "p.txt text/plain 2|a.txt text/plain 1"},
		"payload as a file":            {h, "", []part{{"payload", "p.json", "application/json", `{"body":"P"}`}}, "", "P", ""},
		"payload with mapping":         {h, "?:a.b=body", []part{{"payload", "", "application/json", `{"a":{"b":"P"}}`}}, "", "P", ""},
		"null in payload is absent":    {h, "", []part{{"payload", "", "application/json", `{"body":null}`}, {"body", "", "", "B"}}, "", "B", ""},
		"payload of another type":      {h, "", []part{{"payload", "", "text/plain", "P"}, {"body", "", "", "B"}}, "", "B", ""},
		"an address among the files":   {fetches, "", []part{{"attach", "", "", fetched.URL + "/f.txt"}, {"attach", "a.txt", "", "1"}}, "", "", "f.txt text/plain fetched|a.txt text/plain 1"},
		"a large file, kept on a disk": {h, "", []part{{"attach", "a.bin", "image/png", strings.Repeat("x", 2<<20)}}, "", "", "a.bin image/png " + strings.Repeat("x", 2<<20)},
	} {
		contentType, body := multipartBody(t, tt.parts...)
		if got := post(t, tt.h, "/notify"+tt.query, contentType, body); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		a := s.one(t)
		if a.Title != tt.title || a.Message != tt.body || a.files() != tt.file {
			t.Errorf("%s: got %q %q %.200q", name, a.Title, a.Message, a.files())
		}
	}
}

func TestBadMultipart(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/")+"\nmax_body 1KiB\nattachments {\nmax_size 100B\nmax_count 2\n}", "")
	none := newGateway(t, "default_urls "+s.url("/")+"\nattachments {\nmax_count 0\n}", "")
	file := part{"attach", "a.txt", "", "1"}
	text := part{"body", "", "", "B"}
	for name, tt := range map[string]struct {
		h      *Handler
		parts  []part
		status int
		text   string
	}{
		"a file too large":             {h, []part{{"attach", "a.txt", "", strings.Repeat("x", 101)}}, 413, "the attachment a.txt of the form is larger than 100 B"},
		"too many files":               {h, []part{file, file, file}, 400, "at most 2"},
		"attachments turned off":       {none, []part{text, file}, 400, "turned off"},
		"a text too large":             {h, []part{{"body", "", "", strings.Repeat("x", 1025)}}, 413, "1.0 KiB"},
		"texts together too large":     {h, []part{{"body", "", "", strings.Repeat("x", 600)}, {"y", "", "", strings.Repeat("x", 600)}}, 413, "1.0 KiB"},
		"a payload too large":          {h, []part{{"payload", "", "application/json", `{"body":"` + strings.Repeat("x", 1024) + `"}`}}, 413, "1.0 KiB"},
		"a text that is no UTF-8":      {h, []part{{"body", "", "", "\xff"}}, 400, "UTF-8"},
		"a payload that is no UTF-8":   {h, []part{{"payload", "", "application/json", "{\"body\":\"\xff\"}"}}, 400, "UTF-8"},
		"a payload that is broken":     {h, []part{{"payload", "", "application/json", "{"}}, 400, "JSON"},
		"two payloads":                 {h, []part{{"payload", "", "application/json", "{}"}, {"payload", "", "application/json", "{}"}}, 400, "more than one"},
		"a payload of the wrong type":  {h, []part{{"payload", "", "application/json", `{"body":1}`}}, 400, "the field body is a number"},
		"no body":                      {h, []part{{"title", "", "", "T"}}, 400, "the field body is missing"},
		"a payload without its type":   {h, []part{{"payload", "", "", `{"body":"P"}`}}, 400, "read only if the part has Content-Type: application/json"},
		"a text for an address":        {h, []part{text, {"attach", "", "", "nonsense"}}, 400, "the field attach"},
		"base64 for an address":        {h, []part{text, {"attach", "", "", "data:text/plain;base64,eA=="}}, 400, "the field attach"},
		"a file and too many with it ": {h, []part{file, file, {"attach", "", "", "http://127.0.0.1/"}}, 400, "at most 2"},
	} {
		contentType, body := multipartBody(t, tt.parts...)
		got := post(t, tt.h, "/notify", contentType, body)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", name, got.status, tt.status, tt.text, got.body)
		}
		if n := len(s.take()); n != 0 {
			t.Errorf("%s: %d messages were sent", name, n)
		}
	}
	many := make([]part, 1001)
	for i := range many {
		many[i].name = "x"
	}
	contentType, body := multipartBody(t, many...)
	if got := post(t, newGateway(t, "", ""), "/notify", contentType, body); got.status != 400 || !strings.Contains(got.body, "1000 parts") {
		t.Errorf("too many parts: status %d: %s", got.status, got.body)
	}
	contentType, body = multipartBody(t, text)
	for name, broken := range map[string]string{"cut": body[:len(body)-6], "empty parts": "--x", "nothing of it": "body=x"} {
		if got := post(t, h, "/notify", contentType, broken); got.status != 400 || !strings.Contains(got.body, "multipart") {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
	if got := post(t, h, "/notify", "multipart/form-data", body); got.status != 400 || !strings.Contains(got.body, "boundary") {
		t.Errorf("no boundary: status %d: %s", got.status, got.body)
	}
	if got := post(t, h, "/notify", contentType, body+strings.Repeat("x", 2<<20)); got.status != 413 {
		t.Errorf("a request larger than texts, files and parts can be: status %d: %s", got.status, got.body)
	}
}

// fileServer serves files for attachments to be fetched from.
func fileServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/f.txt":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "fetched")
		case "/large.txt":
			_, _ = io.WriteString(w, strings.Repeat("x", 4<<10))
		case "/hangs":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAttachmentsInJSON(t *testing.T) {
	s, files := newStation(t), fileServer(t)
	h := newGateway(t, open+"default_urls "+s.url("/"), "")
	b64 := base64.StdEncoding.EncodeToString
	for name, tt := range map[string]struct{ attach, files string }{
		"object":             {`"attach":{"base64":"` + b64([]byte("1")) + `","filename":"a.txt"}`, "a.txt text/plain 1"},
		"array of objects":   {`"attachments":[{"base64":"MQ==","filename":"a.txt"},{"base64":"Mg","filename":"b.txt"}]`, "a.txt text/plain 1|b.txt text/plain 2"},
		"its type":           {`"attachment":{"base64":"MQ==","filename":"a.txt","mimetype":"text/csv"}`, "a.txt text/csv 1"},
		"no name":            {`"attach":{"base64":"MQ=="}`, "attachment.001 text/plain 1"},
		"a folder":           {`"attach":{"base64":"MQ==","filename":"../../a.txt"}`, "a.txt text/plain 1"},
		"empty":              {`"attach":{"base64":"","filename":"a.txt"}`, "a.txt text/plain "},
		"URL-safe alphabet":  {`"attach":{"base64":"Pj4_","filename":"a.txt"}`, "a.txt text/plain >>?"},
		"lines":              {`"attach":{"base64":"Pj\n4/\r\n","filename":"a.txt"}`, "a.txt text/plain >>?"},
		"address":            {`"attach":"` + files.URL + `/f.txt"`, "f.txt text/plain fetched"},
		"address in capital": {`"attach":"` + strings.Replace(files.URL, "http", "HTTP", 1) + `/f.txt"`, "f.txt text/plain fetched"},
		"address with name":  {`"attach":"` + files.URL + `/f.txt?name=g.csv"`, "g.csv text/plain fetched"},
		"address in object":  {`"attach":{"url":"` + files.URL + `/f.txt","filename":"h.txt"}`, "h.txt text/plain fetched"},
		"base64 goes first":  {`"attach":{"url":"` + files.URL + `/none","base64":"MQ==","filename":"a.txt"}`, "a.txt text/plain 1"},
		"array of both":      {`"attach":["` + files.URL + `/f.txt","",{"base64":"MQ==","filename":"a.txt"}]`, "f.txt text/plain fetched|a.txt text/plain 1"},
		"names add up":       {`"attachments":{"base64":"Mg==","filename":"b.txt"},"attach":{"base64":"MQ==","filename":"a.txt"}`, "a.txt text/plain 1|b.txt text/plain 2"},
	} {
		if got := post(t, h, "/notify", typeJSON, "{"+tt.attach+"}"); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		if got := s.one(t).files(); got != tt.files {
			t.Errorf("%s: got %q, want %q", name, got, tt.files)
		}
	}
	for name, attach := range map[string]string{"null": "null", "empty array": "[]", "empty text": `""`} {
		if got := post(t, h, "/notify", typeJSON, `{"body":"x","attach":`+attach+`}`); got.status != 200 || s.one(t).files() != "" {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
}

func TestBadAttachments(t *testing.T) {
	s, files := newStation(t), fileServer(t)
	limits := "default_urls " + s.url("/") + "\nattachments {\nmax_size 1KiB\nmax_count 2\n"
	h := newGateway(t, open+"timeout 300ms\n"+limits+"}", "")
	off := newGateway(t, limits+"remote off\n}", "")
	none := newGateway(t, "default_urls "+s.url("/")+"\nattachments {\nmax_count 0\n}", "")
	guarded := newGateway(t, limits+"}", "")
	file := `{"base64":"MQ==","filename":"a.txt"}`
	for name, tt := range map[string]struct {
		h      *Handler
		attach string
		status int
		text   string
	}{
		"not base64":            {h, `{"base64":"!!!"}`, 400, "the field attach.base64 is not valid base64"},
		"base64 cut":            {h, `{"base64":"MQ===MQ"}`, 400, "the field attach.base64 is not valid base64"},
		"base64 of a number":    {h, `{"base64":1}`, 400, "the field attach.base64 is a number"},
		"a name of a number":    {h, `[{"base64":"MQ==","filename":1}]`, 400, "the field attach[0].filename is a number"},
		"an empty object":       {h, `{}`, 400, "base64 or url"},
		"an address of a kind":  {h, `"ftp://127.0.0.1/f"`, 400, "http://"},
		"a local file":          {h, `"file:///etc/passwd"`, 400, "http://"},
		"a path":                {h, `"/etc/passwd"`, 400, "http://"},
		"an address of nothing": {h, `"http://"`, 400, "the attachment attach"},
		"not found":             {h, `"` + files.URL + `/none"`, 400, "404"},
		"fetched too large":     {h, `"` + files.URL + `/large.txt"`, 400, "larger than 1.0 KiB"},
		"fetched too slowly":    {h, `["` + files.URL + `/f.txt","` + files.URL + `/hangs"]`, 400, "attach[1]: "},
		"too large":             {h, `{"base64":"` + strings.Repeat("AAAA", 512) + `"}`, 413, "larger than 1.0 KiB"},
		"too many":              {h, "[" + file + "," + file + "," + file + "]", 400, "at most 2"},
		"remote off":            {off, `"` + files.URL + `/f.txt"`, 400, "turned off"},
		"all off":               {none, file, 400, "turned off"},
		"a guarded address":     {guarded, `"` + files.URL + `/f.txt"`, 400, "loopback"},
	} {
		got := post(t, tt.h, "/notify", typeJSON, `{"body":"x","attach":`+tt.attach+`}`)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", name, got.status, tt.status, tt.text, got.body)
		}
		if strings.Contains(got.body, files.URL) {
			t.Errorf("%s: the answer shows the address: %s", name, got.body)
		}
		if n := len(s.take()); n != 0 {
			t.Errorf("%s: %d messages were sent", name, n)
		}
	}
	if got := post(t, off, "/notify", typeJSON, `{"body":"x","attach":`+file+`}`); got.status != 200 {
		t.Errorf("remote off, but a file of the request's own: status %d: %s", got.status, got.body)
	}
}

// Nothing is fetched for a request that is wrong in another way.
func TestAttachmentsAreFetchedLast(t *testing.T) {
	fetches := 0
	files := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetches++ }))
	defer files.Close()
	h := newGateway(t, open+"key k {\nurl json://127.0.0.1:1 a\n}", "")
	attach := `"attach":"` + files.URL + `/f"`
	for path, body := range map[string]string{
		"/notify/k":     `{"body":"x","type":"bogus",` + attach + `}`,
		"/notify/k/":    `{"body":"x","tag":"z",` + attach + `}`,
		"/notify/other": `{"body":"x",` + attach + `}`,
		"/notify":       `{"body":"x","urls":"nonsense",` + attach + `}`,
		"/notify/":      `{"body":"x",` + attach + `}`,
	} {
		if got := post(t, h, path, typeJSON, body); got.status < 400 {
			t.Errorf("%s: status %d", path, got.status)
		}
	}
	if fetches != 0 {
		t.Errorf("%d attachments were fetched", fetches)
	}
}

// When the request is answered, nothing of its files is left.
func TestTemporaryFilesGo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/"), "")
	contentType, body := multipartBody(t, part{"attach", "a.bin", "", strings.Repeat("x", 2<<20)})
	for _, path := range []string{"/notify", "/notify?type=bogus"} {
		post(t, h, path, contentType, body)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A client that goes away while its attachments are fetched has sent nothing.
func TestClientGoesWhileFetching(t *testing.T) {
	s, files := newStation(t), fileServer(t)
	h := newGateway(t, open+"default_urls "+s.url("/"), "")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the client went away"))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/notify", strings.NewReader(`{"body":"x","attach":"`+files.URL+`/f.txt"}`))
	r.Header.Set("Content-Type", typeJSON)
	if got := do(t, h, r); got.status != 400 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if n := len(s.take()); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}
