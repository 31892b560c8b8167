package notifier

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// faulty is a server that records the requests that it accepts and refuses
// others.
type faulty struct {
	refuse func(path, body string, files int) int // returns a status, or 0 to take the request

	mu    sync.Mutex
	taken []string
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, files := r.FormValue("body"), 0
	if r.MultipartForm != nil {
		files = len(r.MultipartForm.File["file"])
	}
	if code := f.refuse(r.URL.Path, body, files); code != 0 {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
		return
	}
	what := strings.TrimPrefix(r.URL.Path, "/")
	if body != "" {
		what += fmt.Sprintf(" %.4s %d", body, len(body))
	}
	if files > 0 {
		what += " with file"
	}
	f.taken = append(f.taken, what)
}

func (f *faulty) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.taken)
	taken := f.taken
	f.taken = nil
	return taken
}

// numbered returns a text of n numbered parts for the probe.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%04d%s", i, strings.Repeat("x", 996))
	}
	return b.String()
}

// TestProgress checks that a later attempt does not repeat what has arrived,
// with the same Progress or with one restored from JSON in another sender.
func TestProgress(t *testing.T) {
	file := []*Attachment{NewAttachment("a.png", "image/png", []byte("x"))}
	for _, tt := range []struct {
		name   string
		m      *Message
		query  string
		refuse func(path, body string, files int) int // in the first attempt
		always func(path, body string, files int) int // in all attempts
		first  string
		second string
		err    string // of the second attempt
	}{
		{
			name: "several targets", m: hello, query: "?mode=each&to=a,b,c,d",
			refuse: func(path, _ string, _ int) int { return map[string]int{"/b": 503, "/d": 500}[path] },
			first:  "a, c", second: "b, d",
		},
		{
			name: "a split message", m: &Message{Body: numbered(4)}, query: "?overflow=split",
			refuse: func(_, body string, _ int) int { return map[string]int{"0001": 500, "0003": 500}[body[:4]] },
			first:  "send 0000 1000, send 0002 1000", second: "send 0001 1000, send 0003 1000",
		},
		{
			name: "a split message of which the rest was not tried", m: &Message{Body: numbered(3)}, query: "?overflow=split",
			refuse: func(_, body string, _ int) int { return map[string]int{"0001": 503}[body[:4]] },
			first:  "send 0000 1000", second: "send 0001 1000, send 0002 1000",
		},
		{
			name: "steps", m: hello, query: "?mode=once",
			refuse: func(path, _ string, _ int) int { return map[string]int{"/send": 502}[path] },
			first:  "upload", second: "send hell 5",
		},
		{
			name: "a result that a later step needs", m: hello, query: "?mode=value",
			refuse: func(path, _ string, _ int) int { return map[string]int{"/7/file": 502}[path] },
			first:  "upload", second: "7/file",
		},
		{
			name: "a text refused in one piece", m: &Message{Body: numbered(3)},
			refuse: func(_, body string, _ int) int { return map[string]int{"0002": 500}[body[:4]] },
			always: func(_, body string, _ int) int { return map[bool]int{true: 413}[len(body) > 1000] },
			first:  "send 0000 1000, send 0001 1000", second: "send 0002 1000",
		},
		{
			name: "the beginning of a text refused in one piece", m: &Message{Body: numbered(11)},
			refuse: func(_, body string, _ int) int { return map[bool]int{true: 500}[len(body) <= 1000] },
			always: func(_, body string, _ int) int { return map[bool]int{true: 413}[len(body) > 1000] },
			first:  "", second: "send 0000 1000",
			err: "only the beginning of the text has arrived, because it was refused as a whole: the service answered 413",
		},
		{
			name: "parts whose file is refused", m: &Message{Body: numbered(2), Attachments: file}, query: "?overflow=split",
			refuse: func(_, body string, _ int) int { return map[string]int{"0000": 500}[body[:4]] },
			always: func(_, _ string, files int) int { return map[bool]int{true: 415}[files > 0] },
			first:  "send 0001 1000", second: "send 0000 1000", err: "the text has arrived, but not the files, which were refused: ",
		},
		{
			name: "nothing has arrived", m: hello,
			refuse: func(string, string, int) int { return 500 },
			first:  "", second: "send hell 5",
		},
		{
			name: "all has arrived", m: hello,
			first: "send hell 5", second: "",
		},
	} {
		for _, restore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restored %t", tt.name, restore), func(t *testing.T) {
				first := true
				server := &faulty{refuse: func(path, body string, files int) (code int) {
					if tt.always != nil {
						code = tt.always(path, body, files)
					}
					if code == 0 && first && tt.refuse != nil {
						code = tt.refuse(path, body, files)
					}
					return code
				}}
				url := target(t, server.ServeHTTP) + "/tok" + tt.query
				attempt := func(p *Progress) Result {
					s := newTestSender(t)
					d, err := s.Parse(url, nil)
					if err != nil {
						t.Fatal(err)
					}
					return s.Send(t.Context(), tt.m, []Target{{Destination: d, Progress: p}}, Options{Timeout: time.Second}).Results[0]
				}
				p := new(Progress)
				r := attempt(p)
				if got := strings.Join(server.take(), ", "); got != tt.first || r.Temporary != (r.Err != nil) {
					t.Errorf("first attempt: %q, want %q; temporary %t: %v", got, tt.first, r.Temporary, r.Err)
				}
				if r.Err != nil && r.Progress != p {
					t.Error("the result has another Progress than the target")
				}
				if restore {
					saved, err := json.Marshal(p)
					if err != nil {
						t.Fatal(err)
					}
					p = new(Progress)
					if err := json.Unmarshal(saved, p); err != nil {
						t.Fatal(err)
					}
				}
				first = false
				r = attempt(p)
				if got := strings.Join(server.take(), ", "); got != tt.second {
					t.Errorf("second attempt: %q, want %q", got, tt.second)
				}
				switch {
				case tt.err == "" && r.Status != Delivered:
					t.Errorf("second attempt: %s: %v", r.Status, r.Err)
				case tt.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tt.err) || r.Temporary):
					t.Errorf("second attempt: %v, temporary %t, want %s", r.Err, r.Temporary, tt.err)
				}
			})
		}
	}
}

// TestProgressOfAnotherDelivery checks that a delivery ignores a Progress of
// another one.
func TestProgressOfAnotherDelivery(t *testing.T) {
	server := &faulty{refuse: func(path, _ string, _ int) int { return map[string]int{"/b": 500}[path] }}
	base := target(t, server.ServeHTTP)
	s := newTestSender(t)
	attempt := func(query string, m *Message, p *Progress) Result {
		d, err := s.Parse(base+"/tok?mode=each&to=a,b"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Send(t.Context(), m, []Target{{Destination: d, Progress: p}}, Options{}).Results[0]
	}
	file := []*Attachment{NewAttachment("a", "", []byte("x"))}
	for name, other := range map[string]struct {
		query string
		m     *Message
		want  string
	}{
		"the same":           {"", hello, ""},
		"at another time":    {"", &Message{Title: "T", Body: "hello", Time: time.Now().Add(time.Hour)}, ""},
		"another body":       {"", &Message{Title: "T", Body: "hello "}, "a"},
		"another title":      {"", &Message{Title: "Th", Body: "ello"}, "a"},
		"another type":       {"", &Message{Title: "T", Body: "hello", Type: Failure}, "a"},
		"another format":     {"", &Message{Title: "T", Body: "hello", Format: HTML}, "a"},
		"another attachment": {"", &Message{Title: "T", Body: "hello", Attachments: file}, "a"},
		"another URL":        {"&count=4", hello, "a"},
	} {
		p := attempt("", hello, nil).Progress
		server.take()
		attempt(other.query, other.m, p)
		if got := strings.Join(server.take(), ", "); got != other.want {
			t.Errorf("%s: sent %q again, want %q", name, got, other.want)
		}
	}
}

// TestProgressOfOtherParts checks that a part is sent if its text differs from
// the saved Progress, for example because a new version has other limits.
func TestProgressOfOtherParts(t *testing.T) {
	server := &faulty{refuse: func(_, body string, _ int) int { return map[string]int{"0002": 500}[body[:4]] }}
	base := target(t, server.ServeHTTP)
	p := send(t, newTestSender(t), &Message{Body: numbered(3)}, Options{}, base+"/tok?overflow=split").Results[0].Progress
	server.take()
	p.parts[1].id = "of another text"
	server.refuse = func(string, string, int) int { return 0 }
	s := newTestSender(t)
	d, err := s.Parse(base+"/tok?overflow=split", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Send(t.Context(), &Message{Body: numbered(3)}, []Target{{Destination: d, Progress: p}}, Options{})
	if got, want := strings.Join(server.take(), ", "), "send 0001 1000, send 0002 1000"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestProgressIsSavedUnderWay checks that a Progress saved during the delivery
// contains what has arrived by then.
func TestProgressIsSavedUnderWay(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	seen := map[string]int{}
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.FormValue("body")[:4]]++
		mu.Unlock()
		if strings.HasPrefix(r.FormValue("body"), "0002") {
			begun <- struct{}{}
			<-release
		}
	})
	s := newTestSender(t)
	d, err := s.Parse(base+"/tok?overflow=split", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, p := &Message{Body: numbered(4)}, new(Progress)
	ended := make(chan *Report)
	go func() { ended <- s.Send(t.Context(), m, []Target{{Destination: d, Progress: p}}, Options{}) }()
	<-begun
	saved, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	if r := <-ended; !r.OK() {
		t.Fatal(r.Results)
	}
	var restored Progress
	if err := json.Unmarshal(saved, &restored); err != nil {
		t.Fatal(err)
	}
	go func() { <-begun }()
	if r := s.Send(t.Context(), m, []Target{{Destination: d, Progress: &restored}}, Options{}); !r.OK() {
		t.Fatal(r.Results)
	}
	if want := (map[string]int{"0000": 1, "0001": 1, "0002": 2, "0003": 2}); fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("requests by part: %v, want %v", seen, want)
	}
	// The delivery leaves no part of the message in memory.
	for _, part := range p.parts {
		if part.message != nil || p.message != nil {
			t.Error("the Progress holds the message")
		}
	}
}

// TestProgressUnmarshal checks that an invalid Progress is an error, not an
// empty Progress.
func TestProgressUnmarshal(t *testing.T) {
	for _, saved := range []string{`[]`, `{"parts": 1}`, `{"form": {"overflow": "sideways"}}`} {
		if err := json.Unmarshal([]byte(saved), new(Progress)); err == nil {
			t.Errorf("%s: no error", saved)
		}
	}
	saved, err := json.Marshal(new(Progress))
	if err != nil || string(saved) != "{}" {
		t.Errorf("an empty Progress is %s, %v", saved, err)
	}
	if err := json.Unmarshal(saved, new(Progress)); err != nil {
		t.Error(err)
	}
}

// TestOnceValue checks that a result that JSON cannot represent is an error in
// the first attempt, and that a result of another version is computed again.
func TestOnceValue(t *testing.T) {
	s := new(Steps)
	if _, err := OnceValue(s, "a", func() (chan int, error) { return nil, nil }); err == nil {
		t.Error("no error for a channel")
	}
	if _, err := OnceValue(s, "b", func() (int, error) { return 0, io.EOF }); err != io.EOF {
		t.Error(err)
	}
	for _, want := range []int{7, 7} {
		if got, err := OnceValue(s, "b", func() (int, error) { return want, nil }); got != 7 || err != nil {
			t.Error(got, err)
		}
	}
	if got, err := OnceValue(s, "b", func() (string, error) { return "x", nil }); got != "x" || err != nil {
		t.Error(got, err)
	}
}

// tooLargeError is an error of a service that marks it as a refusal itself.
type tooLargeError struct{}

func (tooLargeError) Error() string        { return "552 too large" }
func (tooLargeError) Is(target error) bool { return target == ErrRefused }

// TestTemporary checks that a result has whether a later attempt can succeed,
// and when.
func TestTemporary(t *testing.T) {
	for code, want := range map[int]bool{
		400: false, 401: false, 403: false, 404: false, 410: false, 413: false, 414: false, 415: false, 422: false,
		402: true, 408: true, 409: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 507: true,
	} {
		base := target(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(code)
		})
		r := send(t, newTestSender(t), hello, Options{Timeout: time.Second}, base+"/tok").Results[0]
		asked := map[int]time.Duration{429: time.Hour, 503: time.Hour}[code]
		if r.Temporary != want || r.RetryAfter != asked || r.Progress == nil {
			t.Errorf("%d: temporary %t, again after %s: %v", code, r.Temporary, r.RetryAfter, r.Err)
		}
	}
	blocked := &egress.BlockedError{}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{io.EOF, true},
		{&PanicError{}, true},
		{blocked, false},
		{&URLError{}, false},
		{errLongAnswer, false},
		{errUnusableAddress, false},
		{ErrRefused, false},
		{Refused(io.EOF), false},
		{fmt.Errorf("%w: too long", ErrRefused), false},
		{fmt.Errorf("%w: %w", ErrRefused, io.EOF), false},
		{fmt.Errorf("x: %w", tooLargeError{}), false},
		{fmt.Errorf("x: %w", blocked), false},
		{join([]error{blocked, &StatusError{Code: 404}}), false},
		{join([]error{TargetError(0, 2, blocked), TargetError(1, 2, io.EOF)}), true},
		{join([]error{TargetError(0, 2, Refused(io.EOF)), TargetError(1, 2, &StatusError{Code: 500})}), true},
	} {
		if got := temporary(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
	ok := target(t, func(http.ResponseWriter, *http.Request) {})
	if r := send(t, newTestSender(t), hello, Options{}, ok+"/tok").Results[0]; r.Temporary || r.RetryAfter != 0 || r.Progress != nil {
		t.Errorf("a delivered message: %+v", r)
	}
}
