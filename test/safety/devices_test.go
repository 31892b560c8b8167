package safety

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

// pushService is a push service on this machine with one browser.
type pushService struct {
	*httptest.Server
	browser *webpushtest.Browser
	ca      string // the file of its certificate

	mu     sync.Mutex
	titles []string
	last   struct{ Title, Text, Device, Receipt string }
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	s := &pushService{browser: webpushtest.NewBrowser(t), ca: filepath.Join(t.TempDir(), "ca.pem")}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway was killed while it sent
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := json.Unmarshal([]byte(s.browser.Read(t, string(body))), &s.last); err != nil {
			t.Error(err)
		}
		s.titles = append(s.titles, s.last.Title)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(s.Close)
	file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(s.ca, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *pushService) has(title string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.titles, title)
}

// json sends a request with JSON, and decodes the answer if it is a success.
func (g *gateway) json(method, address string, body, to any, header ...string) int {
	g.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(b))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 && to != nil {
		if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
			g.t.Fatal(err)
		}
	}
	return resp.StatusCode
}

// devicesOption returns the global option with which devices can subscribe.
func devicesOption(folder, more string) string {
	return "notify {\nqueue {\npath " + folder + "\n}\npublic_url https://alerts.example.com\n" +
		"push {\nservices 127.0.0.1\n}\nkey phones\n" + more + "\n}"
}

// TestDevicesSurviveKills checks that an invitation, a device, its secret and the VAPID key
// survive that the gateway is killed at any time: what was answered holds, and each message
// arrives. No text and no secret is in the log.
func TestDevicesSurviveKills(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	s, folder := newPushService(t), newFolder(t)
	g := start(t, devicesOption(folder, "egress {\nallow 127.0.0.0/8\n}"), "stateless off", "SSL_CERT_FILE="+s.ca)
	var invited struct{ URL string }
	if status := g.json(http.MethodPost, g.adminURL+"/notify/keys/phones/invitations",
		map[string][]string{"tags": {"oncall"}}, &invited); status != http.StatusCreated {
		t.Fatalf("the invitation: status %d", status)
	}
	link, err := url.Parse(invited.URL)
	if err != nil || !strings.HasPrefix(invited.URL, "https://alerts.example.com/notify/phones?invite=") {
		t.Fatalf("the link %s: %v", invited.URL, err)
	}
	g.kill()
	g.run()
	// as a browser opens the link
	for _, path := range []string{"/notify/phones", "/notify/phones/", "/notify/other", "/notify/app.webmanifest"} {
		if _, body := g.get(g.url+path+"?key=phones&"+link.RawQuery, "text/html"); body == "" {
			t.Errorf("%s has no answer", path)
		}
	}
	if _, body := g.get(g.url+"/notify/phones?invite=never-made", "text/html"); body == "" {
		t.Error("a wrong invitation has no answer")
	}
	eventually(t, "the access log has other requests", func() bool { return strings.Contains(g.log(), "never-made") }) // and so those before
	var device struct{ ID, Secret string }
	subscribe := map[string]any{
		"name": "phone", "subscription": s.browser.Subscription(s.URL + "/endpoint-secret"),
		"invite": link.Query().Get("invite"),
	}
	if status := g.json(http.MethodPost, g.url+"/notify/phones/devices", subscribe, &device); status != http.StatusCreated {
		t.Fatalf("after a kill, the invitation: status %d", status)
	}
	for i := range amount(false, 20, 4) {
		g.kill() // also right after a device was stored, and after a message was accepted
		g.run()
		if status := g.json(http.MethodPost, g.url+"/notify/phones/devices", subscribe, nil); status != http.StatusForbidden {
			t.Errorf("an invitation that is used up: status %d", status)
		}
		title := fmt.Sprintf("message %d", i)
		if status := g.json(http.MethodPost, g.url+"/notify/phones?tag=oncall",
			map[string]string{"title": title, "body": "text-secret"}, nil); status != http.StatusOK {
			t.Errorf("%s: status %d", title, status)
		}
	}
	for i := range amount(false, 20, 4) {
		title := fmt.Sprintf("message %d", i)
		eventually(t, title+" arrives", func() bool { return s.has(title) })
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if status := g.json(http.MethodPost, g.url+"/notify/phones/devices/"+last.Device+"/receipts",
		map[string]string{"receipt": last.Receipt}, nil); status != http.StatusOK {
		t.Errorf("the receipt: status %d", status)
	}
	if status := g.json(http.MethodDelete, g.url+"/notify/phones/devices/"+device.ID,
		nil, nil, "Authorization", "Bearer "+device.Secret); status != http.StatusOK {
		t.Errorf("the device removes itself: status %d", status)
	}
	for _, secret := range []string{"text-secret", "endpoint-secret", device.Secret, link.Query().Get("invite"), last.Receipt} {
		if strings.Contains(g.log(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// TestDevicesEgress checks that a subscription cannot make the gateway connect to an
// address that egress forbids, also after it was accepted.
func TestDevicesEgress(t *testing.T) {
	t.Parallel()
	s, folder := newPushService(t), newFolder(t)
	const allow = "egress {\nallow 127.0.0.0/8\n}"
	g := start(t, devicesOption(folder, allow), "stateless off", "SSL_CERT_FILE="+s.ca)
	invite := func() string {
		var invited struct{ URL string }
		g.json(http.MethodPost, g.adminURL+"/notify/keys/phones/invitations", map[string][]string{}, &invited)
		_, token, _ := strings.Cut(invited.URL, "invite=")
		return token
	}
	subscribe := func(path string) int {
		return g.json(http.MethodPost, g.url+"/notify/phones/devices",
			map[string]any{"name": "phone", "subscription": s.browser.Subscription(s.URL + path), "invite": invite()},
			nil)
	}
	if status := subscribe("/a"); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	g.reload(devicesOption(folder, ""), "stateless off")
	if status := subscribe("/b"); status != http.StatusBadRequest {
		t.Errorf("a forbidden address: status %d", status)
	}
	if status := g.json(http.MethodPost, g.url+"/notify/phones",
		map[string]string{"title": "forbidden", "body": "b"}, nil); status == http.StatusOK {
		t.Errorf("a message to a forbidden address: status %d", status)
	}
	g.reload(devicesOption(folder, allow), "stateless off")
	if status := g.json(http.MethodPost, g.url+"/notify/phones",
		map[string]string{"title": "allowed", "body": "b"}, nil); status != http.StatusOK {
		t.Errorf("an allowed address: status %d", status)
	}
	if s.has("forbidden") || !s.has("allowed") {
		t.Errorf("the push service got %q", s.titles)
	}
}
