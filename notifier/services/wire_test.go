package services

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// wireSender is a sender whose connections end with the test.
func wireSender(t *testing.T) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPool("test"), 0)
	t.Cleanup(s.Close)
	return s
}

// sendOver sends a message to a URL for real.
func sendOver(t *testing.T, s *notifier.Sender, address string, m *notifier.Message, timeout time.Duration) notifier.Result {
	t.Helper()
	return reportOf(t, s, address, m, timeout).Results[0]
}

// reportOf is [sendOver] with all that there is to tell.
func reportOf(t *testing.T, s *notifier.Sender, address string, m *notifier.Message, timeout time.Duration) *notifier.Report {
	t.Helper()
	d, err := s.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: timeout})
}

// sendText is [sendOver] for a body, and must succeed.
func sendText(t *testing.T, s *notifier.Sender, address, body string) {
	t.Helper()
	if r := sendOver(t, s, address, &notifier.Message{Body: body}, 10*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// sendFails is [sendOver] for a message that cannot arrive. The record of it
// must name the service, and hold none of the secrets; nor must the error.
func sendFails(t *testing.T, s *notifier.Sender, address, want string, secrets ...string) {
	t.Helper()
	report := reportOf(t, s, address, &notifier.Message{Body: "x"}, time.Second)
	r := report.Results[0]
	if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
		t.Errorf("got %v, want an error with %q", r.Err, want)
		return
	}
	record := report.Records[len(report.Records)-1].Text
	if !strings.Contains(record, r.Service) {
		t.Errorf("the record does not name %s: %s", r.Service, record)
	}
	for _, secret := range secrets {
		if strings.Contains(r.Err.Error()+record+r.Destination, secret) {
			t.Errorf("a secret shows: %v; %s; %s", r.Err, record, r.Destination)
		}
	}
}

// wireServer is a server on loopback. When it stops, its connections end.
type wireServer struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

// serveWire starts a server, with TLS where config is not nil; an empty address
// is any free one. A connection ends when serve returns.
func serveWire(t *testing.T, address string, config *tls.Config, serve func(net.Conn)) *wireServer {
	t.Helper()
	l, err := net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	s := &wireServer{listener: l}
	t.Cleanup(s.stop)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return s
}

func (s *wireServer) at() string { return s.listener.Addr().String() }

func (s *wireServer) stop() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
}

// silentServer accepts connections and never says a word.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	return serveWire(t, "", nil, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }).at()
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
