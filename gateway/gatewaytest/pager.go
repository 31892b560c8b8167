package gatewaytest

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Pager is a destination that takes one message a connection, so that it can be used from a
// bubble. A test sets its answers.
type Pager struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	header http.Header
	hold   chan struct{}
	got    []Arrived
}

// NewPager starts a pager that answers with a status. It ends with the test.
func NewPager(t testing.TB, status int) *Pager { return NewPagerAt(t, status, "") }

// NewPagerAt is [NewPager] at an address, which is in stored messages. It waits until no other
// process of tests uses it.
func NewPagerAt(t testing.TB, status int, address string) *Pager {
	t.Helper()
	p := &Pager{status: status}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := Arrived{Path: r.URL.Path}
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Errorf("the destination got no message: %v", err)
		}
		p.mu.Lock()
		p.got = append(p.got, a)
		status, hold := p.status, p.hold
		maps.Copy(w.Header(), p.header)
		p.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.WriteHeader(status)
	}))
	p.Config.SetKeepAlivesEnabled(false)
	if address != "" {
		p.Listener.Close()
		Eventually(t, func() bool {
			var err error
			p.Listener, err = net.Listen("tcp", address)
			return err == nil
		})
	}
	p.Start()
	t.Cleanup(p.Close)
	return p
}

// NotifyURL returns the notification URL of the pager.
func (p *Pager) NotifyURL() string { return "json://" + strings.TrimPrefix(p.URL, "http://") + "/" }

// Answer sets the status of the next answers, and headers given as names and values.
func (p *Pager) Answer(status int, header ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.header = status, http.Header{}
	for i := 0; i < len(header); i += 2 {
		p.header.Set(header[i], header[i+1])
	}
}

// Hold makes the next answers wait until release is called.
func (p *Pager) Hold() (release func()) {
	hold := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hold = nil
		close(hold)
	})
}

// Got returns the messages that have arrived.
func (p *Pager) Got() []Arrived {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// Count returns how many messages have arrived.
func (p *Pager) Count() int { return len(p.Got()) }

// Told returns the type, title and text of each message that has arrived.
func (p *Pager) Told() (out []string) {
	for _, m := range p.Got() {
		text := m.Message
		if m.Title != "" {
			text = m.Title + " | " + text
		}
		out = append(out, m.Type+": "+text)
	}
	return out
}

// WantTold checks, in a bubble, which messages have arrived, in order.
func (p *Pager) WantTold(t testing.TB, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := p.Told(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
