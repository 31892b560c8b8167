package servicetest

import (
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// API stands in for the HTTP API of a service. It gets a request and its body
// and returns the status and body of the answer.
type API func(q *http.Request, body string) (code int, answer string)

// RoundTrip calls f, so that an API is an [http.RoundTripper].
func (f API) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
	}
	code, answer := f(q, string(body))
	return &http.Response{StatusCode: code, Request: q, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// Destination parses a URL whose requests go to f, one at a time. The function
// it returns sends a message there and returns the error of the delivery. A
// service keeps its state, such as a session, from one message to the next.
func (f API) Destination(t *testing.T, address string) (send func(*notifier.Message) error) {
	t.Helper()
	report := f.reporter(t, address)
	return func(m *notifier.Message) error { return report(m).Results[0].Err }
}

// Report sends a message to a URL whose requests go to f, one at a time.
func (f API) Report(t *testing.T, address string, m *notifier.Message) *notifier.Report {
	t.Helper()
	return f.reporter(t, address)(m)
}

func (f API) reporter(t *testing.T, address string) func(*notifier.Message) *notifier.Report {
	t.Helper()
	var mu sync.Mutex
	sender := NewSenderOver(t, API(func(q *http.Request, body string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		return f(q, body)
	}))
	d, err := sender.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(m *notifier.Message) *notifier.Report {
		return sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	}
}

// FormFields returns the parts of a multipart form by name. The value of a
// file is its content.
func FormFields(q *http.Request, body string) url.Values {
	_, params, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	r, out := multipart.NewReader(strings.NewReader(body), params["boundary"]), url.Values{}
	for {
		p, err := r.NextPart()
		if err != nil {
			return out
		}
		text, _ := io.ReadAll(p)
		out.Add(p.FormName(), string(text))
	}
}

// Conversation is a message to an API that keeps state and refuses the same requests as the real
// one.
type Conversation struct {
	Name    string   // of the subtest
	URL     string   // the notification URL
	Message string   // the name of a message of [Message]; default: plain
	Files   []string // names of files to add, each of which is [Picture]
	Err     string   // part of the expected error; "" if the message arrives
	Want    []string // notes of the API, sorted
}

// Converse runs each conversation with a new API. The API calls note with a description of what it
// has received.
func Converse(t *testing.T, api func(note func(format string, args ...any)) API, conversations []Conversation) {
	t.Helper()
	for _, x := range conversations {
		t.Run(x.Name, func(t *testing.T) {
			var got []string
			f := api(func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
			m := Message(t, "plain")
			if x.Message != "" {
				m = Message(t, x.Message)
			}
			for _, name := range x.Files {
				m.Attachments = append(m.Attachments, notifier.NewAttachment(name, "", Picture))
			}
			err := f.Destination(t, x.URL)(m)
			if (err == nil) != (x.Err == "") || err != nil && !strings.Contains(err.Error(), x.Err) {
				t.Errorf("the error is %v, want %q", err, x.Err)
			}
			if slices.Sort(got); !slices.Equal(got, x.Want) {
				t.Errorf("the service has %q, want %q", got, x.Want)
			}
		})
	}
}
