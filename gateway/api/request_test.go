package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

func TestFields(t *testing.T) {
	g := newGateway(t, nil)
	type want struct{ title, body, kind string }
	for name, tt := range map[string]struct {
		target, contentType, body string
		want                      want
	}{
		"JSON":                    {"/notify", typeJSON, `{"title":"T","body":"B","type":"warning"}`, want{"T", "B", "warning"}},
		"JSON with charset":       {"/notify", typeJSON + "; charset=utf-8", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by its other names": {"/notify", "text/json", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by its x- names":    {"/notify", "application/x-json", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by suffix":          {"/notify", "application/ld+json", `{"body":"B"}`, want{"", "B", "info"}},
		"form":                    {"/notify", typeForm, "title=T&body=B+C%21&type=failure", want{"T", "B C!", "failure"}},
		"form without escapes":    {"/notify", typeForm, "body=91% full; act now", want{"", "91% full; act now", "info"}},
		"type in upper case":      {"/notify", typeJSON, `{"body":"B","type":"SUCCESS"}`, want{"", "B", "success"}},
		"null is absent": {
			"/notify?title=Q", typeJSON, `{"body":"B","title":null,"type":null,"format":null}`,
			want{"Q", "B", "info"},
		},
		"unknown fields are ignored": {"/notify?x=y", typeJSON, `{"body":"B","x":{"y":[1]}}`, want{"", "B", "info"}},
		"query":                      {"/notify?title=T&type=success&format=html", typeForm, "body=B", want{"T", "B", "success"}},
		"the payload takes precedence": {
			"/notify?title=Q&type=success", typeJSON, `{"body":"B","title":"P","type":"failure"}`,
			want{"P", "B", "failure"},
		},
		"an empty field is absent":   {"/notify?title=Q", typeForm, "body=B&title=", want{"Q", "B", "info"}},
		"the last of two counts":     {"/notify", typeForm, "body=A&body=B", want{"", "B", "info"}},
		"a title of several lines":   {"/notify", typeJSON, `{"body":"B","title":"T\r\nU\nV\n"}`, want{"T U V", "B", "info"}},
		"a form that begins with {":  {"/notify", typeForm, "{a=1&body=B", want{"", "B", "info"}},
		"the last JSON field counts": {"/notify", typeJSON, `{"body":"A","body":"B"}`, want{"", "B", "info"}},
	} {
		if got := post(g, tt.target, tt.contentType, tt.body); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		a := g.one(t)
		if got := (want{a.title, a.body, a.typ}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestBadRequests checks the status and the error of bad requests, and that
// nothing is sent for them.
func TestBadRequests(t *testing.T) {
	g := newGateway(t, func(g *gateway) { g.limits.MaxBody = 1 << 10 })
	for name, tt := range map[string]struct {
		target, contentType, body string
		status                    int
		text                      string
	}{
		"broken JSON":            {"/notify", typeJSON, `{"body":"x"`, 400, "too early"},
		"broken JSON value":      {"/notify", typeJSON, `{"body":x}`, 400, "the JSON is invalid: at byte 8"},
		"JSON with more":         {"/notify", typeJSON, `{"body":"x"} {}`, 400, "something follows"},
		"JSON array":             {"/notify", typeJSON, `["body"]`, 400, "must be an object"},
		"broken JSON array":      {"/notify", typeJSON, `[1,`, 400, "must be an object"},
		"JSON string":            {"/notify", typeJSON, `"body"`, 400, "must be an object"},
		"JSON null":              {"/notify", typeJSON, `null`, 400, "must be an object"},
		"JSON of spaces":         {"/notify", typeJSON, ` `, 400, "too early"},
		"JSON too deep":          {"/notify", typeJSON, `{"body":` + strings.Repeat("[", 900), 400, "too early"},
		"body is a number":       {"/notify", typeJSON, `{"body":5}`, 400, "the field body is a number"},
		"title is an array":      {"/notify", typeJSON, `{"body":"x","title":["y"]}`, 400, "the field title is an array"},
		"type is a boolean":      {"/notify", typeJSON, `{"body":"x","type":true}`, 400, "the field type is a boolean"},
		"format is an object":    {"/notify", typeJSON, `{"body":"x","format":{}}`, 400, "the field format is an object"},
		"urls is a number":       {"/notify", typeJSON, `{"body":"x","urls":1}`, 400, "the field urls is a number"},
		"urls holds a number":    {"/notify", typeJSON, `{"body":"x","urls":["json://h",1]}`, 400, "the field urls[1] is a number"},
		"attach is a number":     {"/notify", typeJSON, `{"body":"x","attach":1}`, 400, "the field attach is a number"},
		"attach holds null":      {"/notify", typeJSON, `{"body":"x","attachments":[null]}`, 400, "the field attachments[0] is null"},
		"unknown type":           {"/notify", typeJSON, `{"body":"x","type":"critical"}`, 400, "type"},
		"unknown format":         {"/notify", typeForm, `body=x&format=rtf`, 400, "format"},
		"unknown query type":     {"/notify?type=critical", typeForm, `body=x`, 400, "type"},
		"no body":                {"/notify", typeJSON, `{"title":"x"}`, 400, "the field body is missing"},
		"body of spaces":         {"/notify", typeForm, `body=+%0a`, 400, "the field body is missing"},
		"no body but a query":    {"/notify?body=x&title=y", "", "", 400, "the field body is missing"},
		"empty":                  {"/notify", typeJSON, "", 400, "the field body is missing"},
		"tag of $":               {"/notify/k", typeForm, "body=x&tag=$", 400, "the field tag"},
		"tag of a:b":             {"/notify/k", typeForm, "body=x&tag=a:b", 400, "the field tag"},
		"tag of -a":              {"/notify/k?tags=-a", typeForm, "body=x", 400, "the field tags"},
		"tag is a number":        {"/notify/k", typeJSON, `{"body":"x","tag":5}`, 400, "the field tag"},
		"tag is an object":       {"/notify/k", typeJSON, `{"body":"x","tags":{}}`, 400, "the field tags"},
		"tag holds a number":     {"/notify/k", typeJSON, `{"body":"x","tag":["a",5]}`, 400, "the field tag"},
		"wrong tag beside URLs":  {"/notify", typeJSON, `{"body":"x","tag":5}`, 400, "the field tag"},
		"wrong tags beside URLs": {"/notify", typeJSON, `{"body":"x","tags":["a",["b",{}]]}`, 400, "the field tags"},
		"null among tags":        {"/notify", typeJSON, `{"body":"x","tags":[null]}`, 400, "the field tags"},
		"types of urls":          {"/notify", typeJSON, `{"body":"x","urls":5}`, 400, "it must be a string or an array of strings"},
		"types of attach": {
			"/notify", typeJSON, `{"body":"x","attach":5}`, 400,
			"it must be a string, an object, or an array of strings and objects",
		},
		"JSON as a form":     {"/notify/k", typeForm, ` {"body":"x"}`, 400, "Content-Type: application/json"},
		"an array as a form": {"/notify", typeForm, `[{"body":"x"}]`, 400, "Content-Type: application/json"},
		"another media type": {"/notify", "text/csv", "hello", 415, "Content-Type"},
		"broken media type":  {"/notify", "json", `{"body":"x"}`, 415, "Content-Type"},
		"JSON too large":     {"/notify", typeJSON, `{"body":"` + strings.Repeat("x", 1024) + `"}`, 413, "1.0 KiB"},
		"form too large":     {"/notify", typeForm, "body=" + strings.Repeat("x", 1024), 413, "1.0 KiB"},
	} {
		got := post(g, tt.target, tt.contentType, tt.body)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tt.status, got.body)
		}
		if !strings.HasPrefix(got.body, `{"error":"`) || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: the error does not say %q: %s", name, tt.text, got.body)
		}
		if field := regexp.MustCompile(`"the field (\w+)`).FindStringSubmatch(got.body); field != nil &&
			!strings.Contains(got.body, `,"field":"`+field[1]+`",`) {
			t.Errorf("%s: the answer does not name the field: %s", name, got.body)
		}
		if !strings.Contains(got.body, `"details":[]`) || !strings.Contains(got.body, `"results":[]`) {
			t.Errorf("%s: details and results must be empty arrays: %s", name, got.body)
		}
		if sent := g.take(); len(sent) != 0 {
			t.Errorf("%s: %d messages were sent", name, len(sent))
		}
	}
}

func TestTooManyFields(t *testing.T) {
	g := newGateway(t, nil)
	var object, form strings.Builder
	for i := range maxFields + 1 {
		fmt.Fprintf(&object, `"f%d":1,`, i)
		fmt.Fprintf(&form, "f%d=1&", i)
	}
	for contentType, body := range map[string]string{typeJSON: "{" + object.String() + `"body":"x"}`, typeForm: form.String()} {
		if got := post(g, "/notify", contentType, body); got.status != 400 || !strings.Contains(got.body, "more than 1000 fields") {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
	if got := post(g, "/notify?"+form.String(), typeForm, "body=x"); got.status != 400 {
		t.Errorf("query: status %d", got.status)
	}
}

// TestChunkedBody checks that a body without a length is read like others, and
// has the same limit, and that a type is required only if there is a body.
func TestChunkedBody(t *testing.T) {
	g := newGateway(t, func(g *gateway) { g.limits.MaxBody = 1 << 10 })
	for _, tt := range []struct {
		contentType, body string
		want              int
	}{
		{typeJSON, `{"body":"x"}`, 200},
		{typeJSON, `{"body":"` + strings.Repeat("x", 1024) + `"}`, 413},
		{"text/plain", "x", 200},
		{"text/csv", "x", 415},
		{"text/csv", "", 400},
		{"text/plain", "", 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader(tt.body))
		r.ContentLength = -1
		r.Header.Set("Content-Type", tt.contentType)
		if got := do(g, r); got.status != tt.want {
			t.Errorf("%s %.20s: status %d, want %d: %s", tt.contentType, tt.body, got.status, tt.want, got.body)
		}
	}
}

// TestSlowBody checks that a client that sends too slowly gets an error with
// the reason.
func TestSlowBody(t *testing.T) {
	g := newGateway(t, nil)
	for contentType, begin := range map[string]string{
		typeJSON:                           `{"body":`,
		typeForm:                           "body=x",
		"multipart/form-data; boundary=b":  "--b\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\nx",
		"multipart/form-data; boundary=bb": "--bb\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"a\"\r\n\r\nx",
		"multipart/form-data; boundary=b3": "--b",
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", io.MultiReader(strings.NewReader(begin), iotest.ErrReader(os.ErrDeadlineExceeded)))
		r.Header.Set("Content-Type", contentType)
		if got := do(g, r); got.status != 408 || !strings.Contains(got.body, "too long to arrive") || len(g.take()) > 0 {
			t.Errorf("%s: status %d: %s", contentType, got.status, got.body)
		}
	}
}

func TestCompressedBody(t *testing.T) {
	g := newGateway(t, nil)
	r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader("\x1f\x8b"))
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Content-Encoding", "gzip")
	if got := do(g, r); got.status != 415 || !strings.Contains(got.body, "compressed") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// FuzzRequest checks that any input becomes a message or an error of the
// client.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "application/json", `{"body":"x","tag":[["a"]],"attach":[{"base64":"eA=="}],"urls":["json://h"]}`},
		{"type=info&tag=a", "application/x-www-form-urlencoded", "body=x&title=y&attach=http://127.0.0.1/"},
		{":a.b[0]=body", "text/json", `{"a":{"b":["x"]}}`},
		{"", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"},
		{
			"", "multipart/form-data; boundary=x",
			"--x\r\nContent-Disposition: form-data; name=\"payload\"\r\nContent-Type: application/json\r\n\r\n{\"body\":1}\r\n--x--\r\n",
		},
		{"%", "text/plain", "x"},
		{"", "application/xml", "<E><Notification><Version>1.1</Version><Subject>a</Subject><Message>&lt;b&gt;</Message><MessageType>info</" +
			"MessageType><Attachments><Attachment filename=\"a\">eA==</Attachment></Attachments></Notification></E>"},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	limits := message.Limits{MaxBody: 64 << 10, MaxFileSize: 1 << 10, MaxFiles: 3, RemoteFiles: true}
	f.Fuzz(func(t *testing.T, query, contentType string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/notify", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header["Content-Type"] = []string{contentType}
		refused := func(err error) bool {
			if err == nil {
				return false
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Status < 400 || e.Status > 499 {
				t.Fatalf("%v is not an error of the client", err)
			}
			return true
		}
		q, err := Read(httptest.NewRecorder(), r, limits)
		if refused(err) {
			return
		}
		defer q.Close()
		m, err := q.Message()
		if refused(err) {
			return
		}
		if strings.TrimSpace(m.Body) == "" && len(q.files.refs)+len(q.files.attached) == 0 {
			t.Error("the message has neither body nor attachment")
		}
		if !utf8.ValidString(m.Body) || !utf8.ValidString(m.Title) {
			t.Error("the message is not UTF-8")
		}
		_, err = q.content.tags()
		refused(err)
		_, err = q.content.urls(q.limits.Client)
		refused(err)
	})
}

// TestURLsOnKey checks that a message for a key has its URLs ignored, whatever their type,
// as Apprise API 2 ignores them.
func TestURLsOnKey(t *testing.T) {
	g := newGateway(t, nil)
	for _, urls := range []string{`"json://elsewhere"`, `["nonsense"]`, `5`, `{}`, `[1]`} {
		got := post(g, "/notify/k", typeJSON, `{"body":"x","urls":`+urls+`}`)
		if sent := g.take(); got.status != 200 || len(sent) != 1 {
			t.Errorf("%s: status %d, %d messages: %s", urls, got.status, len(sent), got.body)
		}
	}
}
