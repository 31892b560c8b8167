package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// inboxSecret reads the inbox of the test.
const inboxSecret = "reader-of-the-inbox"

// ntfyRequest returns a request as ntfy's clients make it. Its command sends a token as
// Bearer, and its app for Android a user and a password.
func ntfyRequest(t *testing.T, address, agent string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", agent)
	if strings.HasPrefix(agent, "ntfy-android") {
		r.SetBasicAuth("phil", inboxSecret)
	} else {
		r.Header.Set("Authorization", "Bearer "+inboxSecret)
	}
	return r
}

// The clients of ntfy that the test stands in for.
const (
	ntfyCommand = "ntfy/2.13.0 (linux/amd64)"
	ntfyAndroid = "ntfy-android/1.16.0 (play; Android 15)"
)

// ntfyEvent is what ntfy's clients read of a line.
type ntfyEvent struct {
	ID, Event, Topic, Title, Message string
	Time, Expires                    int64
	Priority                         int
}

// ntfyStream follows messages as ntfy's clients do.
type ntfyStream struct {
	t *testing.T
	*bufio.Scanner
}

func subscribeNtfy(t *testing.T, address, agent string) ntfyStream {
	t.Helper()
	resp, err := http.DefaultClient.Do(ntfyRequest(t, address, agent))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, resp.Status)
	}
	return ntfyStream{t, bufio.NewScanner(resp.Body)}
}

// next returns the next message.
func (s ntfyStream) next() (e ntfyEvent) {
	s.t.Helper()
	for s.Scan() {
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			s.t.Fatalf("%v in %q", err, s.Text())
		}
		if e.Event == "message" {
			return e
		}
	}
	s.t.Fatalf("the stream ends: %v", s.Err())
	return e
}

// TestInboxPostgres follows the inbox of a key at two gateways that share a database, with
// the requests of ntfy's command and of its app for Android. What one gateway accepts, in
// any format, the clients of both get once and in the same order; a client that comes back
// to the other gateway misses nothing.
func TestInboxPostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	key := "key ops {\ninbox 7d\nreader " + inboxSecret + "\n}"
	a, b := newQueueGatewayWith(t, p, key, ""), newQueueGatewayWith(t, p, key, "")
	const topic = "/notify/ops/ntfy/phone"
	for _, g := range []*queueGateway{a, b} {
		resp, err := http.DefaultClient.Do(ntfyRequest(t, g.url+topic+"/auth", ntfyAndroid))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.TrimSpace(string(body)) != `{"success":true}` {
			t.Fatalf("auth: %s %s", resp.Status, body)
		}
	}
	streams := []ntfyStream{
		subscribeNtfy(t, a.url+topic+"/json", ntfyCommand), subscribeNtfy(t, b.url+topic+"/json", ntfyCommand),
		subscribeNtfy(t, a.url+topic+"/json?since=all", ntfyAndroid), subscribeNtfy(t, b.url+topic+"/json?since=all", ntfyAndroid),
	}
	send := func(g *queueGateway, path, body string) {
		t.Helper()
		contentType := "application/json"
		if !strings.HasPrefix(body, "{") {
			contentType = "application/x-www-form-urlencoded" // as curl -d sends it
		}
		resp, err := http.Post(g.url+path, contentType, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("%s: %s %s", path, resp.Status, text)
		}
	}
	send(a, "/notify/ops", "backup done")
	send(b, "/notify/ops/gotify/message", `{"title":"From Gotify","message":"disk is full","priority":8}`)
	const more = 20
	for i := range more {
		send([]*queueGateway{a, b}[i%2], "/notify/ops", url.Values{"body": {fmt.Sprintf("message %d", i)}}.Encode())
	}
	var first []ntfyEvent
	for i, s := range streams {
		for k := range 2 + more {
			e := s.next()
			if i == 0 {
				first = append(first, e)
			} else if e != first[k] {
				t.Errorf("stream %d has %+v as message %d, and another one %+v", i, e, k, first[k])
			}
		}
	}
	if first[0].Message != "backup done" || first[1].Title != "From Gotify" ||
		first[1].Message != "disk is full" || first[1].Topic != "phone" || first[0].Expires <= first[0].Time {
		t.Errorf("%+v", first[:2])
	}
	again := subscribeNtfy(t, b.url+topic+"/json?since="+first[4].ID, ntfyAndroid)
	for _, want := range first[5:] {
		if got := again.next(); got != want {
			t.Errorf("after it has come back: %+v, want %+v", got, want)
		}
	}
	poll := subscribeNtfy(t, a.url+topic+"/json?poll=1&since="+first[0].ID, ntfyCommand)
	for _, want := range first[1:] {
		if got := poll.next(); got != want {
			t.Errorf("polled %+v, want %+v", got, want)
		}
	}
	if poll.Scan() {
		t.Errorf("a poll goes on: %s", poll.Text())
	}
}
