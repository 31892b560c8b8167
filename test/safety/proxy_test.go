package safety

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is a forward proxy that answers every request itself, for any host, in
// a configurable way.
type proxy struct {
	address string
	close   func() error // makes it refuse connections
	ca      string       // the file of its root certificate
	way     atomic.Pointer[string]
	file    atomic.Pointer[[]byte] // see answerWith

	key    *ecdsa.PrivateKey
	issuer *x509.Certificate
	mu     sync.Mutex
	certs  map[string]*tls.Certificate
	told   map[string]string // the last request to each host that was answered with a file
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{ca: filepath.Join(t.TempDir(), "ca.pem"), certs: map[string]*tls.Certificate{}, told: map[string]string{}}
	p.is("400")
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.issuer = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, p.issuer, p.issuer, p.key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address, p.close = l.Addr().String(), l.Close
	accept(t, l, p.serve)
	return p
}

func (p *proxy) is(way string) { p.way.Store(&way) }

// answerWith makes the proxy answer with a file.
func (p *proxy) answerWith(file []byte) {
	p.file.Store(&file)
	p.is("file")
}

// last returns the last request to a host that the proxy has answered with a file,
// and forgets it.
func (p *proxy) last(host string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.told[host]
	delete(p.told, host)
	return text
}

// environment returns an environment in which a program uses the proxy and
// trusts its certificates. Post-quantum key exchange is off, because its keys
// take long to make and the proxy does not use them.
func (p *proxy) environment() []string {
	return []string{"GODEBUG=tlsmlkem=0", "HTTP_PROXY=http://" + p.address, "HTTPS_PROXY=http://" + p.address, "SSL_CERT_FILE=" + p.ca}
}

func (p *proxy) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	// The way is read when the request arrives, not when the connection opens.
	way := *p.way.Load()
	if r.Method == http.MethodConnect {
		if way == "no such host" {
			fmt.Fprintf(c, "HTTP/1.1 502 no such host\r\nContent-Length: 0\r\n\r\n")
			return
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		host, _, _ := strings.Cut(r.Host, ":")
		if way == "TLS" {
			host = "another.example"
		}
		secure := tls.Server(c, &tls.Config{
			GetCertificate:   func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate(host) },
			CurvePreferences: []tls.CurveID{tls.X25519}, // a third of the default's cost
		})
		c, in = secure, bufio.NewReader(secure)
		if r, err = http.ReadRequest(in); err != nil {
			return
		}
	}
	// A handshake takes longer than a response, so connections are used again.
	for err == nil && p.answer(c, in, r) {
		r, err = http.ReadRequest(in)
	}
}

// answer answers a request. It reports whether the connection can be used again.
func (p *proxy) answer(c net.Conn, in *bufio.Reader, r *http.Request) bool {
	switch way := *p.way.Load(); way {
	case "silence":
		_, _ = io.Copy(io.Discard, in)
	case "reset", "no such host", "TLS":
	case "file":
		file := *p.file.Load()
		text := wire(r)
		p.mu.Lock()
		p.told[r.Host] = text
		p.mu.Unlock()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(file), file)
	case "not HTTP":
		fmt.Fprintf(c, "%s\r\n%s\r\n", r.URL, wire(r))
	default:
		text := wire(r)
		_, err := fmt.Fprintf(c, "HTTP/1.1 %s %s\r\nContent-Length: %d\r\n\r\n%s", way, r.URL.EscapedPath(), len(text), text)
		return err == nil && len(text) < 1<<20 // wire does not read the rest of a longer body
	}
	return false
}

func (p *proxy) certificate(host string) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.certs[host]; c != nil {
		return c, nil
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(int64(len(p.certs) + 2)), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, p.issuer, p.key.Public(), p.key)
	if err != nil {
		return nil, err
	}
	p.certs[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: p.key}
	return p.certs[host], nil
}
