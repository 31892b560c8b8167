package api

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// fileServer serves files for attachments to be fetched from.
func fileServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/f.txt":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "fetched")
		case "/", "/snap", "/snap.cgi":
			w.Header().Set("Content-Type", "image/jpeg")
			_, _ = io.WriteString(w, "picture")
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
	g, files := newGateway(t, nil), fileServer(t)
	b64 := base64.StdEncoding.EncodeToString
	for name, tt := range map[string]struct{ attach, files string }{
		"object": {`"attach":{"base64":"` + b64([]byte("1")) + `","filename":"a.txt"}`, "a.txt text/plain 1"},
		"array of objects": {
			`"attachments":[{"base64":"MQ==","filename":"a.txt"},{"base64":"Mg","filename":"b.txt"}]`,
			"a.txt text/plain 1|b.txt text/plain 2",
		},
		"its type":           {`"attachment":{"base64":"MQ==","filename":"a.txt","mimetype":"text/csv"}`, "a.txt text/csv 1"},
		"no name":            {`"attach":{"base64":"MQ=="}`, "attachment.txt text/plain 1"},
		"a folder":           {`"attach":{"base64":"MQ==","filename":"../../a.txt"}`, "a.txt text/plain 1"},
		"empty":              {`"attach":{"base64":"","filename":"a.txt"}`, "a.txt text/plain "},
		"URL-safe alphabet":  {`"attach":{"base64":"Pj4_","filename":"a.txt"}`, "a.txt text/plain >>?"},
		"lines":              {`"attach":{"base64":"Pj\n4/\r\n","filename":"a.txt"}`, "a.txt text/plain >>?"},
		"address":            {`"attach":"` + files.URL + `/f.txt"`, "f.txt text/plain fetched"},
		"address in capital": {`"attach":"` + strings.Replace(files.URL, "http", "HTTP", 1) + `/f.txt"`, "f.txt text/plain fetched"},
		"address with name":  {`"attach":"` + files.URL + `/f.txt?name=g.csv"`, "g.csv text/plain fetched"},
		"address in object":  {`"attach":{"url":"` + files.URL + `/f.txt","filename":"h.txt"}`, "h.txt text/plain fetched"},
		"base64 goes first":  {`"attach":{"url":"` + files.URL + `/none","base64":"MQ==","filename":"a.txt"}`, "a.txt text/plain 1"},
		"array of both": {
			`"attach":["` + files.URL + `/f.txt","",{"base64":"MQ==","filename":"a.txt"}]`,
			"f.txt text/plain fetched|a.txt text/plain 1",
		},
		"a snapshot":    {`"attach":"` + files.URL + `/snap?action=snapshot"`, "snap.jpg image/jpeg picture"},
		"a program's":   {`"attach":"` + files.URL + `/snap.cgi?channel=1"`, "snap.cgi.jpg image/jpeg picture"},
		"a host's":      {`"attach":"` + files.URL + `/?action=snapshot"`, "attachment.jpg image/jpeg picture"},
		"a chosen name": {`"attach":{"url":"` + files.URL + `/snap","filename":"door"}`, "door.jpg image/jpeg picture"},
		"names add up": {
			`"attachments":{"base64":"Mg==","filename":"b.txt"},"attach":{"base64":"MQ==","filename":"a.txt"}`,
			"a.txt text/plain 1|b.txt text/plain 2",
		},
	} {
		if got := post(g, "/notify", typeJSON, "{"+tt.attach+"}"); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		if got := g.one(t).files; got != tt.files {
			t.Errorf("%s: got %q, want %q", name, got, tt.files)
		}
	}
	for name, attach := range map[string]string{"null": "null", "empty array": "[]", "empty text": `""`} {
		if got := post(g, "/notify", typeJSON, `{"body":"x","attach":`+attach+`}`); got.status != 200 || g.one(t).files != "" {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
}

func TestBadAttachments(t *testing.T) {
	files := fileServer(t)
	limit := func(change func(l *message.Limits)) *gateway {
		return newGateway(t, func(g *gateway) {
			g.limits.MaxFileSize, g.limits.MaxFiles, g.limits.FetchTimeout = 1<<10, 2, time.Minute
			change(&g.limits)
		})
	}
	public, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := limit(func(*message.Limits) {})
	off := limit(func(l *message.Limits) { l.RemoteFiles = false })
	none := limit(func(l *message.Limits) { l.MaxFiles = 0 })
	hurried := limit(func(l *message.Limits) { l.FetchTimeout = 300 * time.Millisecond })
	guarded := limit(func(l *message.Limits) { l.Egress = public })
	file := `{"base64":"MQ==","filename":"a.txt"}`
	for name, tt := range map[string]struct {
		g      *gateway
		attach string
		status int
		text   string
	}{
		"not base64":                   {g, `{"base64":"!!!"}`, 400, "the field attach.base64 is not valid base64"},
		"base64 cut":                   {g, `{"base64":"MQ===MQ"}`, 400, "the field attach.base64 is not valid base64"},
		"base64 as a number":           {g, `{"base64":1}`, 400, "the field attach.base64 is a number"},
		"a number as a name":           {g, `[{"base64":"MQ==","filename":1}]`, 400, "the field attach[0].filename is a number"},
		"an empty object":              {g, `{}`, 400, "base64 or url"},
		"an address of another scheme": {g, `"ftp://127.0.0.1/f"`, 400, "http://"},
		"a local file":                 {g, `"file:///etc/passwd"`, 400, "http://"},
		"a path":                       {g, `"/etc/passwd"`, 400, "http://"},
		"an address without a host":    {g, `"http://"`, 400, "the attachment attach"},
		"not found":                    {g, `"` + files.URL + `/none"`, 400, "404"},
		"fetched too large":            {g, `"` + files.URL + `/large.txt"`, 400, "larger than 1.0 KiB"},
		"fetched too slowly":           {hurried, `[` + file + `,"` + files.URL + `/hangs"]`, 400, "attach[1]: "},
		"too large":                    {g, `{"base64":"` + strings.Repeat("AAAA", 512) + `"}`, 413, "larger than 1.0 KiB"},
		"too many":                     {g, "[" + file + "," + file + "," + file + "]", 400, "at most 2"},
		"remote off":                   {off, `"` + files.URL + `/f.txt"`, 400, "turned off"},
		"all off":                      {none, file, 400, "turned off"},
		"a guarded address":            {guarded, `"` + files.URL + `/f.txt"`, 400, "loopback"},
	} {
		got := post(tt.g, "/notify", typeJSON, `{"body":"x","attach":`+tt.attach+`}`)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", name, got.status, tt.status, tt.text, got.body)
		}
		if strings.Contains(got.body, files.URL) {
			t.Errorf("%s: the answer shows the address: %s", name, got.body)
		}
		if n := len(tt.g.take()); n != 0 {
			t.Errorf("%s: %d messages were sent", name, n)
		}
	}
	if got := post(off, "/notify", typeJSON, `{"body":"x","attach":`+file+`}`); got.status != 200 {
		t.Errorf("remote off, but a file of the request's own: status %d: %s", got.status, got.body)
	}
}
