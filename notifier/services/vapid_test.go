package services

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

func base64URL(t *testing.T, s string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkVAPID checks the Authorization header (RFC 8292).
func checkVAPID(t *testing.T, header, audience string, key *ecdsa.PublicKey) {
	t.Helper()
	token, public, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		t.Fatalf("Authorization: %s", header)
	}
	point, err := key.ECDH()
	if err != nil || public != base64.RawURLEncoding.EncodeToString(point.Bytes()) {
		t.Errorf("k=%s is not the public key", public)
	}
	signature := base64URL(t, parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(signature) != 64 || !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(base64URL(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if claims.Aud != audience || claims.Sub != "mailto:ops@example.com" || left <= 0 || left > 24*time.Hour {
		t.Errorf("claims: %+v", claims)
	}
}

// newVAPIDKey returns a new key, and its number as key files have it.
func newVAPIDKey(t *testing.T) (key *ecdsa.PrivateKey, number []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if number, err = key.Bytes(); err != nil {
		t.Fatal(err)
	}
	return key, number
}

func TestVapid(t *testing.T) {
	key, number := newVAPIDKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	browsers := map[string]*webpushtest.Browser{"/a": webpushtest.NewBrowser(t), "/b": webpushtest.NewBrowser(t)}
	file, err := json.Marshal(map[string]any{
		"Anna": browsers["/a"].Subscription("https://push.example.net:8443/a"),
		"ben":  browsers["/b"].Subscription("https://push.example.net:8443/b"),
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.URLEncoding.EncodeToString
	for name, keyFile := range map[string]string{
		"number": encode(number), "PKCS 8": encode(inPEM("PRIVATE KEY", der)), "SEC 1": encode(inPEM("EC PRIVATE KEY", sec1)),
	} {
		for _, tt := range []struct{ url, want string }{
			{"vapid://ops@example.com?ttl=60", "/a /b"},
			{"vapid://ops@example.com/anna?ttl=60", "/a"},
			{"vapid://?from=ops@example.com&to=BEN&ttl=60", "/b"},
		} {
			got := map[string]bool{}
			service := servicetest.API(func(q *http.Request, body string) (int, string) {
				checkVAPID(t, q.Header.Get("Authorization"), "https://push.example.net:8443", &key.PublicKey)
				if q.Header.Get("TTL") != "60" || q.Header.Get("Content-Encoding") != "aes128gcm" {
					t.Errorf("header: %v", q.Header)
				}
				if text := browsers[q.URL.Path].Read(t, body); text != "Disk almost full\r\nVolume /data is at 91% on host-7" {
					t.Errorf("the browser reads %q", text)
				}
				got[q.URL.Path] = true
				return 201, ""
			})
			send := service.Destination(t, tt.url+"&keyfile="+keyFile+"&subfile="+encode(file))
			if err := send(servicetest.Message(t, "plain")); err != nil {
				t.Fatal(err)
			}
			for path := range browsers {
				if got[path] != strings.Contains(tt.want, path) {
					t.Errorf("%s, key as %s: pushed to %v, want %s", tt.url, name, got, tt.want)
				}
			}
		}
	}
}

func TestVapidFailures(t *testing.T) {
	_, number := newVAPIDKey(t)
	file, err := json.Marshal(webpushtest.NewBrowser(t).Subscription("https://push.example.net/a"))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.URLEncoding.EncodeToString
	good := "&keyfile=" + encode(number) + "&subfile=" + encode(file)
	for _, tt := range []struct{ url, want string }{
		{"vapid://ops@example.com?subfile=" + encode(file), "is missing; add keyfile=… to the query"},
		{"vapid://ops@example.com?keyfile=" + encode(number), "is missing; add subfile=… to the query"},
		{"vapid://ops@example.com?keyfile=/etc/ssl/key.pem&subfile=" + encode(file), "must be the content of the file"},
		{"vapid://ops@example.com?keyfile=AAAA&subfile=" + encode(file), "is not a private key"},
		{"vapid://ops@example.com?keyfile=" + encode(number) + "&subfile=AAAA", "must be the content of a JSON file"},
		{"vapid://ops@example.com?keyfile=" + encode(number) + "&subfile=" + encode([]byte(`{`)), "not JSON"},
		{"vapid://ops@example.com?keyfile=" + encode(number) + "&subfile=" + encode([]byte(`{}`)), "no subscription"},
		{
			"vapid://ops@example.com?keyfile=" + encode(number) + "&subfile=" + encode([]byte(`{"a": {"endpoint": "http://a.example/"}}`)),
			"https endpoint",
		},
		{"vapid://ops@example.com/nobody?" + good, "not the name of a subscription"},
		{"vapid://nonsense?" + good, "user (e-mail address of the sender, before the @) is missing"},
	} {
		if _, err := notifier.Parse(tt.url, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: %v, want %s", tt.url, err, tt.want)
		}
	}
	d, err := notifier.Parse("vapid://ops@example.com/nobody/a?"+good, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(d.Warnings(), "|"),
		"a target is not the name of a subscription in subfile and is left out") || d.Mistake() != "" {
		t.Errorf("one wrong target: %q", d.Warnings())
	}
	gone := servicetest.API(func(*http.Request, string) (int, string) { return 410, "" })
	if err := gone.Destination(t, "vapid://ops@example.com?"+good)(servicetest.Message(t, "plain")); err == nil ||
		!strings.Contains(err.Error(), "subscribe again") {
		t.Error(err)
	}
}

// newVAPIDBrowser returns a browser and the URL that sends to it.
func newVAPIDBrowser(t *testing.T) (b *webpushtest.Browser, address string) {
	t.Helper()
	_, number := newVAPIDKey(t)
	b = webpushtest.NewBrowser(t)
	file, err := json.Marshal(b.Subscription("https://push.example.net/a"))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.URLEncoding.EncodeToString
	return b, "vapid://ops@example.com?keyfile=" + encode(number) + "&subfile=" + encode(file)
}

// A text that is longer than a push is split by bytes, and each push has a TTL of a
// day.
func TestVapidLong(t *testing.T) {
	browser, address := newVAPIDBrowser(t)
	const line = "Füße, Größe, Äpfel"
	text := strings.Repeat(line+"\n", 400)
	for _, overflow := range []string{"upstream", "split"} {
		var got []string
		service := servicetest.API(func(q *http.Request, body string) (int, string) {
			if q.Header.Get("TTL") != "86400" || len(body) > 4096 {
				t.Errorf("%d bytes with %v", len(body), q.Header)
			}
			got = append(got, browser.Read(t, body))
			return 201, ""
		})
		if err := service.Destination(t, address+"&overflow="+overflow)(&notifier.Message{Body: text}); err != nil {
			t.Errorf("%s: %v", overflow, err)
		}
		if len(got) != 3 || strings.Join(got, "\n") != strings.TrimSpace(text) {
			t.Errorf("%s: the browser reads %d texts: %.100q", overflow, len(got), got)
		}
	}
}

// TestVapidJSON checks that a service worker can get the message as JSON, with the
// tag of its notification, and that the longest text fits into a push.
func TestVapidJSON(t *testing.T) {
	browser, address := newVAPIDBrowser(t)
	var got []string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		got = append(got, browser.Read(t, body))
		return 201, ""
	})
	send := service.Destination(t, address+"&payload=json&overflow=split")
	worse := servicetest.Message(t, "worse")
	if err := send(worse); err != nil {
		t.Fatal(err)
	}
	if want := `{"title":"Disk almost full","body":"Volume /data is at 99% on ` +
		`host-7","type":"failure","tag":"` + worse.Incident.ID + `"}`; got[0] != want {
		t.Errorf("the service worker gets %s, want %s", got[0], want)
	}
	worse.Title, worse.Body = strings.Repeat(`"`, 150), strings.Repeat("\"<\n", 2000)
	if err := send(worse); err != nil {
		t.Error(err)
	}
	if len(got) < 3 || got[1] == got[2] {
		t.Errorf("%d pushes", len(got))
	}
}

// TestVapidAcknowledge checks that a service worker gets the address and the action to
// acknowledge an incident, and that they fit into a push with the longest text.
func TestVapidAcknowledge(t *testing.T) {
	browser, address := newVAPIDBrowser(t)
	var got []string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		got = append(got, browser.Read(t, body))
		return 201, ""
	})
	send := service.Destination(t, address+"&payload=json&overflow=split")
	m := servicetest.Message(t, "button")
	if err := send(m); err != nil {
		t.Fatal(err)
	}
	const link = `"acknowledge_url":"` + servicetest.AcknowledgeURL + `","actions":[{"action":"acknowledge","title":"Acknowledge"}]}`
	if !strings.HasSuffix(got[0], link) {
		t.Errorf("the service worker gets %s", got[0])
	}
	m.Title, m.Body = strings.Repeat(`"`, 150), strings.Repeat("\"<\n", 2000)
	m.Link = notifier.Link{
		Label: notifier.AcknowledgeLabel,
		URL:   "https://" + strings.Repeat("a", 60) + ".example.com/notify/incidents/k4fzmoyq2xr6vnw7tdbhj3ce5a",
	}
	got = nil
	if err := send(m); err != nil {
		t.Error(err)
	}
	for i, text := range got {
		if last := i == len(got)-1; strings.Contains(text, "acknowledge_url") != last {
			t.Errorf("push %d of %d has the address: %t", i+1, len(got), !last)
		}
	}
}
