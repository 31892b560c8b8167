package gatewaytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Arrived is a message as a destination received it.
type Arrived struct {
	Path     string `json:"-"`
	Title    string `json:"title"`
	Message  string `json:"message"`
	Type     string `json:"type"`
	Incident string `json:"incident"`

	AcknowledgeURL string `json:"acknowledge_url"`
	AnswerURL      string `json:"answer_url"`
	OpenSeconds    int64  `json:"incident_open_seconds"`

	Attachments []struct {
		Filename string `json:"filename"`
		Base64   []byte `json:"base64"`
		Mimetype string `json:"mimetype"`
	} `json:"attachments"`
}

// Files describes the name, type and content of each file of the message.
func (a Arrived) Files() string {
	var out []string
	for _, f := range a.Attachments {
		out = append(out, fmt.Sprintf("%s %s %s", f.Filename, f.Mimetype, f.Base64))
	}
	return strings.Join(out, "|")
}

// Station is a destination that receives messages of the service json. It
// answers 500 at paths that begin with /refuse.
type Station struct {
	*httptest.Server
	mu  sync.Mutex
	got []Arrived
}

// NewStation starts a station that closes at the end of the test.
func NewStation(t testing.TB) *Station {
	s := &Station{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := Arrived{Path: r.URL.Path}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &a)
		}
		if err != nil {
			t.Errorf("the destination got no message: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got = append(s.got, a)
		if strings.HasPrefix(r.URL.Path, "/refuse") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// NotifyURL returns the notification URL of a path of the station.
func (s *Station) NotifyURL(path string) string {
	return "json://" + strings.TrimPrefix(s.URL, "http://") + path
}

// Take returns and removes the messages that have arrived, ordered by path.
func (s *Station) Take() []Arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	slices.SortFunc(got, func(a, b Arrived) int { return strings.Compare(a.Path, b.Path) })
	return got
}

// One returns the only message that has arrived.
func (s *Station) One(t testing.TB) Arrived {
	t.Helper()
	got := s.Take()
	if len(got) != 1 {
		t.Fatalf("%d messages arrived, want 1: %+v", len(got), got)
	}
	return got[0]
}

// Paths returns the paths at which messages have arrived.
func (s *Station) Paths() string {
	var out []string
	for _, a := range s.Take() {
		out = append(out, strings.TrimPrefix(a.Path, "/"))
	}
	return strings.Join(out, " ")
}

// Arrives waits for a message whose title begins with a text.
func (s *Station) Arrives(t testing.TB, title string) Arrived {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		i := slices.IndexFunc(s.got, func(a Arrived) bool { return strings.HasPrefix(a.Title, title) })
		if i >= 0 {
			defer s.mu.Unlock()
			return s.got[i]
		}
		s.mu.Unlock()
	}
	t.Fatalf("no message %q; there are %+v", title, s.Take())
	return Arrived{}
}
