package servicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Recorder is an [http.RoundTripper] that answers requests and records them as
// text.
type Recorder struct {
	// Answers are tried in order; a request that none matches is answered
	// with status 200 and an empty JSON object.
	Answers []Answer

	// Masks match text to replace in the record.
	Masks []*regexp.Regexp

	// Files is the directory of the files that URLs may name; "" for none.
	Files string

	// Requests are the requests so far. Read it when nothing is being sent.
	Requests []string

	mu sync.Mutex
}

// Answer is the answer to the requests whose method and URL, with a space
// between, match.
type Answer struct {
	Match *regexp.Regexp
	Code  int
	Body  string
}

// RoundTrip records a request and answers it. It fails if the length of the
// body is not as stated.
func (r *Recorder) RoundTrip(q *http.Request) (*http.Response, error) {
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
	text := requestText(q, body)
	for _, m := range r.Masks {
		text = m.ReplaceAllString(text, "MASKED")
	}
	r.mu.Lock()
	r.Requests = append(r.Requests, text)
	r.mu.Unlock()
	return Respond(q, r.Answers), nil
}

// Respond returns the first of answers that matches the request q, or else an
// empty JSON object with status 200.
func Respond(q *http.Request, answers []Answer) *http.Response {
	for _, a := range answers {
		if a.Match.MatchString(q.Method + " " + q.URL.String()) {
			return response(q, a.Code, a.Body)
		}
	}
	return response(q, http.StatusOK, "{}")
}

// response is an answer to q with a JSON body.
func response(q *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: q, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Deliver sends a message to a URL over the recorder and sorts the requests.
// The error comes from parsing the URL.
func (r *Recorder) Deliver(address string, m *notifier.Message) (notifier.Result, error) {
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", r), 0)
	d, err := sender.ParseWithFiles(address, nil, notifier.Files{Dir: r.Files})
	if err != nil {
		return notifier.Result{}, err
	}
	report := sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	slices.Sort(r.Requests)
	return report.Results[0], nil
}

// requestText returns a request in a form that people can read and compare:
// query, form and JSON are spread over lines, random boundaries replaced, and
// long lines shortened.
func requestText(q *http.Request, body []byte) string {
	var b strings.Builder
	address := *q.URL
	query := address.Query()
	address.RawQuery = ""
	fmt.Fprintf(&b, "%s %s\n", q.Method, address.String())
	for _, k := range slices.Sorted(maps.Keys(query)) {
		for _, v := range query[k] {
			fmt.Fprintf(&b, "  ?%s=%s\n", k, v)
		}
	}
	mediaType, params, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	boundary := params["boundary"]
	for _, k := range slices.Sorted(maps.Keys(q.Header)) {
		if k == "User-Agent" {
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
	case mediaType == "application/x-www-form-urlencoded":
		form, _ := url.ParseQuery(string(body))
		for _, k := range slices.Sorted(maps.Keys(form)) {
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
		text = strings.ReplaceAll(text, string(Picture), "<graph.png>")
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "?")
		b.WriteString(strings.TrimSuffix(text, "\n"))
		if len(body) > 0 {
			b.WriteString("\n")
		}
	}
	return longLine.ReplaceAllStringFunc(b.String(), func(s string) string {
		return fmt.Sprintf("%s…(%d bytes)…%s", s[:200], len(s), s[len(s)-100:])
	})
}

// longLine matches ASCII only, so that no character is cut in two.
var longLine = regexp.MustCompile(`[ -~]{600,}`)
