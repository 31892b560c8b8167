package services

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// wireSender is a sender whose connections end with the test.
func wireSender(t *testing.T) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(notifier.NewPool("test"), 0)
	t.Cleanup(s.Close)
	return s
}

// sendOver sends a message to a URL for real.
func sendOver(t *testing.T, s *notifier.Sender, address string, m *notifier.Message, timeout time.Duration) notifier.Result {
	t.Helper()
	d, err := s.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: timeout}).Results[0]
}

// sendText is [sendOver] for a body, and must succeed.
func sendText(t *testing.T, s *notifier.Sender, address, body string) {
	t.Helper()
	if r := sendOver(t, s, address, &notifier.Message{Body: body}, 10*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// sendFails is [sendOver] for a message that cannot arrive. The error must
// not hold any of the secrets.
func sendFails(t *testing.T, s *notifier.Sender, address, want string, secrets ...string) {
	t.Helper()
	r := sendOver(t, s, address, &notifier.Message{Body: "x"}, time.Second)
	if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
		t.Errorf("got %v, want an error with %q", r.Err, want)
	}
	for _, secret := range secrets {
		if r.Err != nil && strings.Contains(r.Err.Error(), secret) {
			t.Errorf("the error shows a secret: %v", r.Err)
		}
	}
}

// silentServer accepts connections and never says a word.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return l.Addr().String()
}

// ownCertificate is of a server that nobody vouches for.
func ownCertificate(t *testing.T, names ...string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// wireLog is what a server has seen, in order.
type wireLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *wireLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// take returns what was seen since the last call.
func (l *wireLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// expect wants exactly these lines since the last call.
func (l *wireLog) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("the server saw\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
