package feed

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestNtfyRequest checks the requests for parameters in the query, in any case, and in headers.
func TestNtfyRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC)
	since, err := inbox.ParseSince(now.Format(time.RFC3339), now, time.ParseDuration)
	if err != nil {
		t.Fatal(err)
	}
	_, errSince := inbox.ParseSince("never", now, time.ParseDuration)
	at, topics := since.After+1, []string{"a", "b-c"}
	for _, c := range []struct {
		query   string
		headers map[string]string
		want    NtfyRequest
	}{
		{"", nil, NtfyRequest{Since: inbox.Since{None: true}}},
		{"POLL=1", nil, NtfyRequest{Poll: true}},
		{"x-poll=yes&si=latest", nil, NtfyRequest{Poll: true, Since: inbox.Since{Latest: true}}},
		{"", map[string]string{"Poll": "1", "X-Since": "none"}, NtfyRequest{Poll: true, Since: inbox.Since{None: true}}},
		{"since=" + at.String(), nil, NtfyRequest{Since: inbox.Since{After: at}}},
		{"since=hwQ2YpKdmgzz", nil, NtfyRequest{Published: "hwQ2YpKdmgzz"}}, // the ID of a publisher, or of another server
		{
			"since=12000h32m10s", nil,
			NtfyRequest{Since: inbox.Since{After: since.After - inbox.Cursor((12000*time.Hour + 32*time.Minute + 10*time.Second).Microseconds())}},
		},
		{
			"poll=1&m=x&t=y&id=z&p=high,5&tags=a,+b", nil,
			NtfyRequest{Poll: true, Filter: NtfyFilter{"z", "x", "y", []int{4, 5}, []string{"a", "b"}}},
		},
		{"", map[string]string{"Title": "of another header", "Tags": "x", "Poll": "0"}, NtfyRequest{Since: inbox.Since{None: true}}},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		p := &NtfyParameters{Query: query, Header: func(name string) string {
			for given, value := range c.headers {
				if strings.EqualFold(given, name) {
					return value
				}
			}
			return ""
		}}
		c.want.Topics = topics
		if got, err := ParseNtfyRequest("a,b-c", p, now, time.ParseDuration); err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s, %v: %+v, %v, want %+v", c.query, c.headers, got, err, c.want)
		}
	}
	for _, c := range []struct {
		topics, since, priority string
		want                    error
	}{
		{"a,", "", "", errNtfyTopics},
		{"a" + strings.Repeat(",a", maxTopics), "", "", errNtfyTopics},
		{"a", "never", "", errSince},
		{"a", "", "6", errNtfyPriority},
	} {
		p := &NtfyParameters{Query: url.Values{"since": {c.since}, "priority": {c.priority}}, Header: func(string) string { return "" }}
		if _, err := ParseNtfyRequest(c.topics, p, now, time.ParseDuration); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestNtfyEvents checks that each topic has the message, unless the client does not want it,
// and the form of events.
func TestNtfyEvents(t *testing.T) {
	t.Parallel()
	m := &inbox.Message{Cursor: 1, Time: time.Unix(10, 0), Type: notifier.Info, Title: "<T>", Body: "x", Format: notifier.Text}
	n := &NtfyRequest{Topics: []string{"a", "b"}}
	var lines []string
	list := func(e *NtfyEvent) error {
		line, err := e.ServerSent()
		lines = append(lines, string(line))
		return err
	}
	if err := n.Events(inbox.EventMessage, m, time.Unix(20, 0), list); err != nil {
		t.Fatal(err)
	}
	n.Filter.Title = "other"
	if err := n.Events(inbox.EventMessage, m, time.Unix(20, 0), list); err != nil || len(lines) != 2 {
		t.Fatalf("%q, %v", lines, err)
	}
	const line = `data: {"id":"m00000000001","time":10,"expires":20,"event":"message","topic":"b","title":"<T>","message":"x","priority":3}` +
		"\n\n"
	if lines[1] != line {
		t.Errorf("got %q", lines[1])
	}
	if err := n.Events(inbox.EventOpen, nil, time.Time{}, list); err != nil || !strings.HasPrefix(lines[2], "event: open\ndata: {") ||
		!strings.Contains(lines[2], `"topic":"a,b"`) {
		t.Errorf("%q, %v", lines[2], err)
	}
}

// TestNtfyText checks that a stranger's text is plain text for ntfy's clients, and that a line is
// not longer than they read.
func TestNtfyText(t *testing.T) {
	t.Parallel()
	m := &inbox.Message{Body: "[a](https://b.example)", Format: notifier.Markdown, Foreign: true, Type: notifier.Info}
	if e := newNtfyMessage(m, "t", time.Time{}); e.ContentType != "" || !strings.Contains(e.Message, "a") {
		t.Errorf("%+v", e)
	}
	m = &inbox.Message{Body: strings.Repeat("x", 2*maxNtfy), Format: notifier.Text}
	if e := newNtfyMessage(m, "t", time.Time{}); len(e.Message) > maxNtfy+len("…") {
		t.Errorf("%d bytes", len(e.Message))
	}
}
