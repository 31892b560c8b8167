package notifier

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// picky is a destination that refuses texts that are too long, and files.
type picky struct {
	most  int  // length of a text
	files bool // whether files are taken
	code  int  // of a refusal

	mu  sync.Mutex
	got []string // the texts that it has taken, and the names of files
}

func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/upload") {
		_, _ = io.Copy(io.Discard, r.Body)
		p.got = append(p.got, "upload")
		return
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, files := r.FormValue("body"), r.MultipartForm.File["file"]
	if len(body) > p.most || len(files) > 0 && !p.files {
		w.WriteHeader(p.code)
		return
	}
	p.got = append(p.got, fmt.Sprint(len(body)))
	for _, f := range files {
		p.got = append(p.got, f.Filename)
	}
}

// What a destination refuses is not all that an alert has.
func TestRescue(t *testing.T) {
	file := []*Attachment{NewAttachment("a.png", "image/png", []byte("x"))}
	const taken, long = 1000, 2500 // the probe's limit, and a text beyond it
	for _, tt := range []struct {
		name   string
		dest   *picky
		body   int
		files  []*Attachment
		query  string
		got    string
		status Status
		says   string // of the error, or else of the records
		tries  int
	}{
		{"a long text goes in parts", &picky{most: taken, code: 400}, long, nil, "", "1000 1000 500", Delivered, "refused the text in one piece", 2},
		{"the file with the last", &picky{most: taken, code: 413, files: true}, long, file, "", "1000 1000 500 a.png", Delivered, "refused the text in one piece", 2},
		{"a text without its file", &picky{most: taken, code: 415}, 5, file, "", "5", Failed, "the text has arrived, but not the files, which were refused: the service answered 415", 2},
		{"a long text without its file", &picky{most: taken, code: 422}, long, file, "", "1000 1000 500", Failed, "the text has arrived, but not the files", 3},
		{"the beginning of a very long text", &picky{most: taken, code: 400}, 10*taken + 1, nil, "", "1000", Failed, "only the beginning of the text has arrived", 2},
		{"after further tries", &picky{most: taken, code: 400}, long, nil, "?retry=1&wait=0", "1000 1000 500", Delivered, "refused the text in one piece", 3},
		{"a text that was to be cut is none too long", &picky{most: 500, code: 400}, long, nil, "?overflow=truncate", "", Failed, "answered 400", 1},
		{"a step is done already", &picky{most: taken, code: 400}, long, nil, "?mode=once", "upload", Failed, "answered 400", 1},
		{"a step is done that may have brought the text", &picky{most: taken, code: 400}, 5, file, "?mode=once", "upload", Failed, "answered 400", 1},
		{"another refusal", &picky{most: taken, code: 403}, long, file, "", "", Failed, "answered 403", 1},
		{"in vain", &picky{most: -1, code: 400}, long, file, "", "", Failed, "answered 400", 3},
		{"nothing but a file", &picky{most: taken, code: 400}, 0, file, "", "", Failed, "answered 400", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := target(t, tt.dest.ServeHTTP)
			m := &Message{Body: strings.Repeat("x", tt.body), Attachments: tt.files}
			report := send(t, newTestSender(t), m, Options{}, base+"/tok"+tt.query)
			r := report.Results[0]
			if got := strings.Join(tt.dest.got, " "); got != tt.got {
				t.Errorf("arrived: %s, want %s", got, tt.got)
			}
			says := fmt.Sprint(r.Err)
			if r.Err == nil {
				says = fmt.Sprint(report.Records)
			}
			if r.Status != tt.status || r.Attempts != tt.tries || !strings.Contains(says, tt.says) {
				t.Errorf("%s after %d: %s", r.Status, r.Attempts, says)
			}
		})
	}
}

// Of several answers the longest wait counts, wherever it stands.
func TestAskedToWait(t *testing.T) {
	var chats sync.Map
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		_, again := chats.LoadOrStore(r.URL.Path, true)
		switch {
		case r.URL.Path == "/b" && !again:
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(429)
		case r.URL.Path == "/a":
			w.WriteHeader(403)
		}
	})
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to=a,b")
	if r := report.Results[0]; r.Attempts != 2 || !strings.Contains(fmt.Sprint(r.Err), "target 1 of 2: the service answered 403") || strings.Contains(fmt.Sprint(r.Err), "429") {
		t.Errorf("%d attempts: %v", r.Attempts, r.Err)
	}
}

// A service that takes a few parts at a time gets them all, each once, though
// it asks to be waited for more often than a single message may.
func TestPartsAreWaitedFor(t *testing.T) {
	var mu sync.Mutex
	var got []string
	n := 0
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 0 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		got = append(got, r.FormValue("body")[:2])
	})
	var body, want strings.Builder
	for i := range 30 {
		fmt.Fprintf(&body, "%02d%s", i, strings.Repeat("x", 998))
		fmt.Fprintf(&want, "%02d ", i)
	}
	report := send(t, newTestSender(t), &Message{Body: body.String()}, Options{}, base+"/tok?overflow=split")
	if r := report.Results[0]; r.Err != nil || strings.Join(got, " ")+" " != want.String() {
		t.Errorf("%v; arrived: %v", r.Err, got)
	}
	if n > 2*30 {
		t.Errorf("%d requests for 30 parts", n)
	}
}

// One target that can never be reached does not end the tries for the others.
func TestRetryBesideWhatIsFinal(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&egress.BlockedError{}, false}, {&PanicError{}, false}, {errLongAnswer, false}, {io.EOF, true},
		{fmt.Errorf("x: %w", &egress.BlockedError{}), false},
		{join([]error{&egress.BlockedError{}, &PanicError{}}), false},
		{join([]error{fmt.Errorf("target 1: %w", &egress.BlockedError{}), io.EOF}), true},
	} {
		if got := mayRetry(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}

// The error text about many failed targets is short.
func TestManyErrors(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("no ", 90))
	})
	var targets []string
	for i := range 300 {
		targets = append(targets, fmt.Sprint("t", i))
	}
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to="+strings.Join(targets, ","))
	text := report.Results[0].Err.Error()
	if len(text) > maxErrorText+len("…") || !strings.Contains(text, "target 10 of 300") || !strings.Contains(text, "and 290 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// Every request says how many gateways the message has been through, and a
// client's URL cannot hide it.
func TestHops(t *testing.T) {
	const product = "caddy-notify/test"
	var agent string
	base := target(t, func(w http.ResponseWriter, r *http.Request) { agent = r.UserAgent() })
	all, err := egress.NewPolicy([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		hops  int
		guard *egress.Policy
		query string
		want  int
	}{
		{0, nil, "", 0}, {1, nil, "", 1}, {2, all, "", 2},
		{0, all, "?%2BUser-Agent=mine", 0}, {2, all, "?%2BUser-Agent=mine", 2}, {2, all, "?%2BUser-Agent=" + product + "%20hops/0", 2},
		{1, nil, "?%2BUser-Agent=mine", -1},
	} {
		d, err := Parse(base+"/tok"+tt.query, tt.guard)
		if err != nil {
			t.Fatal(err)
		}
		newTestSender(t).Send(t.Context(), &Message{Body: "x", Hops: tt.hops}, []Target{{Destination: d}}, Options{})
		if got := HopsOf(agent, product); got != tt.want {
			t.Errorf("%s: %d, want %d", agent, got, tt.want)
		}
	}
}
