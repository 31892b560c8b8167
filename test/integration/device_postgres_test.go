package integration

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

// TestDevicesPostgres checks that gateways that share a database share devices, what devices
// have confirmed, and the VAPID key, and that an invitation is for one device at all of them.
func TestDevicesPostgres(t *testing.T) {
	var mu sync.Mutex
	keys := map[string]bool{} // the public VAPID keys of the pushes
	var last struct{ Title, Device, Receipt string }
	browser := webpushtest.NewBrowser(t)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), "k=")
		mu.Lock()
		defer mu.Unlock()
		keys[key] = true
		if err := json.Unmarshal([]byte(browser.Read(t, string(body))), &last); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(service.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca)
	p := newPostgres(t)
	global := "public_url https://alerts.example.com\negress {\nallow 127.0.0.0/8\n}\npush {\nservices 127.0.0.1\n}\nkey ops"
	a, b := newQueueGatewayWith(t, p, global, "console {\nmanage open\n}"), newQueueGatewayWith(t, p, global, "console {\nmanage open\n}")
	call := func(method, address string, body, answer any) int {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		r, err := http.NewRequest(method, address, bytes.NewReader(text))
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer resp.Body.Close()
		if answer != nil && resp.StatusCode < 300 {
			if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
				t.Error(err)
			}
		}
		return resp.StatusCode
	}
	invite := func(g *queueGateway) string {
		t.Helper()
		r := request(t, http.MethodPost, g.url+"/notify/console/keys/ops?invite", "tags=")
		r.Header.Set("Accept", "text/html")
		status, page := ask(t, r)
		_, rest, _ := strings.Cut(page, "<output>https://alerts.example.com/notify/ops?invite=")
		token, _, ok := strings.Cut(rest, "<")
		if !ok {
			t.Fatalf("status %d, no link in %s", status, page)
		}
		return token
	}
	device := func(invitation string) map[string]any {
		return map[string]any{"name": "phone", "subscription": browser.Subscription(service.URL + "/x"), "invite": invitation}
	}
	once := invite(a)
	statuses := make(chan int, 8)
	for i := range cap(statuses) {
		go func() {
			statuses <- call(http.MethodPost, []string{a.url, b.url}[i%2]+"/notify/ops/devices", device(once), nil)
		}()
	}
	var created, refused int
	for range cap(statuses) {
		switch <-statuses {
		case http.StatusCreated:
			created++
		case http.StatusForbidden:
			refused++
		}
	}
	if created != 1 || refused != cap(statuses)-1 {
		t.Fatalf("%d devices have used an invitation, and %d were refused", created, refused)
	}
	// which replaces it
	if status := call(http.MethodPost, a.url+"/notify/ops/devices", device(invite(b)), nil); status != http.StatusCreated {
		t.Fatalf("the other gateway: status %d", status)
	}
	var sent struct{ ID string }
	for _, g := range []*queueGateway{b, a} { // the first one learns of it within seconds
		eventually(t, "a message reaches the device", func() bool {
			return call(http.MethodPost, g.url+"/notify/ops", map[string]string{"title": "t", "body": "b"}, &sent) == http.StatusOK
		})
	}
	mu.Lock()
	receipt := last
	mu.Unlock()
	if status := call(http.MethodPost, b.url+"/notify/ops/devices/"+receipt.Device+"/receipts",
		map[string]string{"receipt": receipt.Receipt}, nil); status != http.StatusOK {
		t.Errorf("the receipt: status %d", status)
	}
	eventually(t, "the result tells the receipt", func() bool {
		var m struct{ Results []struct{ Received string } }
		return call(http.MethodGet, a.url+"/notify/messages/"+sent.ID, nil, &m) == http.StatusOK &&
			len(m.Results) == 1 && m.Results[0].Received != ""
	})
	var list []struct{ Name, Seen string }
	if status := call(http.MethodGet, a.url+"/notify/ops/devices", nil, &list); status != http.StatusOK ||
		len(list) != 1 || list[0].Name != "phone" || list[0].Seen == "" {
		t.Errorf("status %d, %+v", status, list)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != 1 {
		t.Errorf("there are %d VAPID keys", len(keys))
	}
}
