package gatewaytest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

// pushCA signs the certificates of the push services. Test programs with this package trust
// no other CA.
var pushCA = servicetest.NewTrustedCA()

// TrustedCA returns the only CA that a program with this package trusts.
func TrustedCA() *servicetest.CA { return pushCA }

// PushOptions returns options for all sites, with which devices can subscribe with an invitation at
// a [PushService].
func PushOptions(keys ...site.KeyOptions) site.Options {
	return site.Options{
		Keys: keys, PublicURL: "https://alerts.example.com", Egress: Loopback(),
		Push: &site.Push{Contact: "mailto:ops@example.com", Who: device.DevicesInvited, Max: 20, Hosts: []string{"127.0.0.1"}},
	}
}

// PushService is a push service on this machine, and the browsers that subscribe there. It
// takes one push a connection, so that it can be used from a bubble.
type PushService struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	status   int
	browsers map[string]*webpushtest.Browser // by path
	got      []Pushed
}

// Pushed is a push as the browser receives it.
type Pushed struct {
	Path    string
	Header  http.Header
	Size    int // size of the encrypted body, in bytes
	Payload device.Payload
}

// NewPushService starts a push service that takes all pushes. It ends with the test.
func NewPushService(t testing.TB) *PushService {
	s := &PushService{t: t, status: http.StatusCreated, browsers: map[string]*webpushtest.Browser{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.SetKeepAlivesEnabled(false)
	s.TLS = pushCA.Certificate(t, "127.0.0.1")
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *PushService) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.browsers[r.URL.Path]
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p := Pushed{Path: r.URL.Path, Header: r.Header, Size: len(body)}
	if err := json.Unmarshal([]byte(b.Read(s.t, string(body))), &p.Payload); err != nil {
		s.t.Error(err)
	}
	if s.status == http.StatusCreated {
		s.got = append(s.got, p)
	}
	w.WriteHeader(s.status)
}

// Answer sets the status of the next answers. Pushes arrive with status 201 only.
func (s *PushService) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Got returns the pushes that have arrived.
func (s *PushService) Got() []Pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// Subscription returns the subscription of a new browser at a path, as PushSubscription.toJSON
// returns it.
func (s *PushService) Subscription(path string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = webpushtest.NewBrowser(s.t)
	return s.browsers[path].Subscription(s.URL + path)
}

// Phone is a subscribed device, as the gateway returns it.
type Phone struct{ ID, Secret, Name string }

// Subscribe subscribes a device to the key k of a gateway, with an invitation for tags.
func (s *PushService) Subscribe(t testing.TB, g *Gateway, name string, tags ...string) (p Phone) {
	t.Helper()
	got := g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{
		"name": name, "subscription": s.Subscription("/" + url.PathEscape(name)), "invite": g.Invite("k", tags...),
	})
	if got.Status != http.StatusCreated {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	if err := json.Unmarshal([]byte(got.Body), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// Invite returns the token of an invitation to a configured key.
func (g *Gateway) Invite(key string, tags ...string) string {
	g.t.Helper()
	place := g.Devices.DevicePlace(g.Resolved.Configured(key))
	token, _, err := g.Rooms().Devices.Invitations.Make(g.t.Context(), place, tags)
	if err != nil {
		g.t.Fatal(err)
	}
	return token
}

// Ask sends a request with a JSON value, or without a body if it is nil, and asks for JSON.
// Headers are given as names and values.
func (g *Gateway) Ask(method, target string, body any, header ...string) Reply {
	g.t.Helper()
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			g.t.Fatal(err)
		}
	}
	return g.Do(NewRequest(method, target, string(text), append([]string{"Content-Type", TypeJSON}, header...)...))
}
