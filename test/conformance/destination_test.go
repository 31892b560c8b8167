package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// answer is the answer of the destination to requests whose method and URL, with a space
// between, match. A body that begins with base64: is binary.
type answer struct {
	Match string `json:"match"`
	Code  int    `json:"code"`
	Body  string `json:"body"`
}

// destination is an [http.RoundTripper] that answers every request itself, and keeps what it saw.
type destination struct {
	mu      sync.Mutex
	answers []answer
	seen    []any // requests, as describe returns them
}

// begin sets the answers for the next case.
func (d *destination) begin(answers []answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers, d.seen = answers, nil
}

// end returns the requests since begin.
func (d *destination) end() []any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *destination) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if r.ContentLength != int64(len(body)) {
		return nil, fmt.Errorf("the length is stated as %d and is %d", r.ContentLength, len(body))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, describe(r, body))
	given := answer{Code: http.StatusOK}
	for _, a := range d.answers {
		if regexp.MustCompile(a.Match).MatchString(r.Method + " " + r.URL.String()) {
			given = a
			break
		}
	}
	content, binary := strings.CutPrefix(given.Body, "base64:")
	if binary {
		b, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return nil, err
		}
		content = string(b)
	}
	if given.Code == http.StatusNoContent || r.Method == http.MethodHead {
		content = ""
	}
	return &http.Response{
		StatusCode: given.Code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(content)), ContentLength: int64(len(content)),
	}, nil
}

// clientsOwn are header fields that every HTTP client sets in its own way.
var clientsOwn = []string{
	"User-Agent", "Accept-Encoding", "Connection", "Content-Length", "Accept", "Host", "Transfer-Encoding", "Te", "Traceparent", "Tracestate",
}

// describe returns a request in the form of the recordings, as decoded JSON: method, scheme, host,
// path, the query as sorted pairs, headers with names in lower case, and the body, see
// [describeBody].
func describe(r *http.Request, body []byte) any {
	host := strings.ToLower(r.URL.Hostname())
	if port := r.URL.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[r.URL.Scheme] {
		host += ":" + port
	}
	path, query, _ := strings.Cut(r.URL.RequestURI(), "?")
	headers := map[string]any{}
	for name, values := range r.Header {
		if len(values) > 0 && !slices.Contains(clientsOwn, name) {
			headers[strings.ToLower(name)] = values[len(values)-1]
		}
	}
	contentType := r.Header.Get("Content-Type")
	if before, _, found := strings.Cut(contentType, ";"); found && strings.Contains(contentType, "boundary=") {
		headers["content-type"] = before
	}
	return map[string]any{
		"method": r.Method, "scheme": r.URL.Scheme, "host": host, "path": path, "query": pairs(query),
		"headers": headers, "body": describeBody(contentType, body),
	}
}

// describeBody returns the body of a request: nil if it is empty, or else an object with a kind.
func describeBody(contentType string, body []byte) any {
	low := strings.ToLower(contentType)
	switch {
	case len(body) == 0:
		return nil
	case strings.Contains(low, "multipart/"):
		return map[string]any{"kind": "multipart", "parts": parts(contentType, body)}
	case strings.Contains(low, "json"), body[0] == '{', body[0] == '[':
		if v, err := decode(body); err == nil {
			return map[string]any{"kind": "json", "json": v}
		}
	}
	if strings.Contains(low, "x-www-form-urlencoded") {
		return map[string]any{"kind": "form", "form": pairs(string(body))}
	}
	return map[string]any{"kind": "raw", "data": text(body)}
}

// decode decodes JSON, with numbers as they are written.
func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.More() {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

// text returns bytes as a text. Those that are no UTF-8 become base64.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return "base64:" + base64.StdEncoding.EncodeToString(b)
}

// pairs returns the names and values of a form or a query, sorted.
func pairs(form string) []any {
	all := []any{}
	for field := range strings.SplitSeq(form, "&") {
		if field != "" {
			name, value, _ := strings.Cut(field, "=")
			all = append(all, []any{unescape(name), unescape(value)})
		}
	}
	slices.SortFunc(all, func(a, b any) int { return slices.Compare(textsOf(a), textsOf(b)) })
	return all
}

func textsOf(pair any) (texts []string) {
	for _, v := range pair.([]any) {
		texts = append(texts, v.(string))
	}
	return texts
}

// unescape decodes percent encoding, and leaves what is invalid.
func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// parts returns the parts of a multipart body, each with its name, its file name and its type, or
// nil for none.
func parts(contentType string, body []byte) []any {
	all := []any{}
	_, params, _ := mime.ParseMediaType(contentType)
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := r.NextPart()
		if err != nil {
			return all
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return all
		}
		if strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "base64") {
			if plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), "")); err == nil {
				data = plain
			}
		}
		part := map[string]any{"name": nil, "filename": nil, "type": nil, "data": text(data)}
		_, disposition, _ := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		for _, key := range []string{"name", "filename"} {
			if value, ok := disposition[key]; ok {
				part[key] = value
			}
		}
		if values := p.Header["Content-Type"]; len(values) > 0 {
			part["type"] = values[0]
		}
		all = append(all, part)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", "", "null"},
		{"application/json", `{"n": 1.50}`, `{"json":{"n":1.50},"kind":"json"}`},
		{"", `[1]`, `{"json":[1],"kind":"json"}`},
		{"application/json", `{"n"`, `{"data":"{\"n\"","kind":"raw"}`},
		{"application/x-www-form-urlencoded", "b=2&a=%C3%A9+x&a=&c=%zz", `{"form":[["a",""],["a","é x"],["b","2"],["c","%zz"]],"kind":"form"}`},
		{"text/plain", "x\xff", `{"data":"base64:eP8=","kind":"raw"}`},
		{
			"multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n" +
				"--b\r\n\r\ny\r\n--b--\r\n",
			`{"kind":"multipart","parts":[{"data":"x","filename":"a.txt","name":"f","type":"text/plain"},` +
				`{"data":"y","filename":null,"name":null,"type":null}]}`,
		},
	} {
		got, err := json.Marshal(describeBody(c.contentType, []byte(c.body)))
		if err != nil || string(got) != c.want {
			t.Errorf("%s %q: %s, %v; want %s", c.contentType, c.body, got, err, c.want)
		}
	}
}
