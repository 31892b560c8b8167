// Package integration sends messages to real servers and drives the gateway
// with real clients. The tests start the servers themselves, on loopback.
//
//	cd test/integration && go test .
//
// It is a separate module, so that the gateway does not depend on what only
// these tests need (a browser driver, a second MQTT client). A test whose
// program is not installed is skipped, or fails if the environment variable CI
// is set.
package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// body is the text of a message, which must arrive unchanged.
const body = "one <b>&\"quoted\"</b> \\ 'x'\ntwo: é ü 漢字 😀 + % # ?\n.\nfour"

// authority signs the trusted certificates. While the tests run, the system
// trusts no other.
var authority *signer

// scratch is a directory for the duration of the run.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "integration")
	if err != nil {
		panic(err)
	}
	scratch = dir
	authority = trusted()
	file := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(file, authority.pem, 0o644); err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", file)
	os.Setenv("SSL_CERT_DIR", dir)
	// Parallel tests wait for leases, so all of them run at once, unless -parallel is given.
	_ = flag.Set("test.parallel", "16")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// signer is a certificate authority.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newSigner() *signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &signer{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// trusted returns the authority that this program trusts, as all with gatewaytest do.
func trusted() *signer {
	cert, key := gatewaytest.TrustedCA().Pair()
	return &signer{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})}
}

// certificate writes a certificate for localhost, 127.0.0.1 and these names, and
// its key, to files.
func (s *signer) certificate(t *testing.T, names ...string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: append(names, "localhost"), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// writeFile writes a file that other users can read.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// program returns the path of a program from a package of Debian.
func program(t *testing.T, name, debian string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin", "/usr/lib/postfix/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed; Debian has it in %s", name, debian)
	}
	t.Skipf("%s is not installed; Debian has it in %s", name, debian)
	return ""
}

// freePort returns a TCP port that nothing listens at, a different one each time.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := strconv.Atoi(porttest.Free())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// server is a running server process.
type server struct {
	cmd *exec.Cmd
	out output
}

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts a program and waits until it listens at the port. The program is
// stopped when the test ends.
func start(t *testing.T, port int, name string, args ...string) *server {
	t.Helper()
	s := &server{cmd: exec.Command(name, args...)}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = &s.out, &s.out, t.TempDir()
	home := t.TempDir() // not the caller's, whose data the program could change
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, s.out.String())
		}
	})
	eventually(t, name+" listens", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return s
}

// stop ends the process and its children, and waits for it.
func (s *server) stop() {
	if s.cmd.ProcessState == nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
	}
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	within(t, time.Minute, what, f)
}

func within(t *testing.T, limit time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// newSender returns a sender that is closed when the test ends.
func newSender(t *testing.T) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPool("test"), 0)
	t.Cleanup(s.Close)
	return s
}

// send sends a message to a URL.
func send(t *testing.T, s *notifier.Sender, url string, m *notifier.Message) (notifier.Result, *notifier.Report) {
	t.Helper()
	d, err := s.Parse(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := s.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 15 * time.Second})
	return report.Results[0], report
}

// delivers sends a text to a URL, and fails the test if that fails.
func delivers(t *testing.T, s *notifier.Sender, url, text string) {
	t.Helper()
	if r, _ := send(t, s, url, &notifier.Message{Body: text}); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// fails sends a text to a URL, which must fail: with want in the error and
// without the secret, and with a record that names the service.
func fails(t *testing.T, s *notifier.Sender, url, want, secret string) {
	t.Helper()
	r, report := send(t, s, url, &notifier.Message{Body: "x"})
	if r.Err == nil {
		t.Fatalf("%s: no error", r.Destination)
	}
	last := report.Records[len(report.Records)-1].Text
	switch {
	case !strings.Contains(r.Err.Error(), want):
		t.Errorf("%s: got %q, want an error with %q", r.Destination, r.Err, want)
	case !strings.Contains(last, r.Service):
		t.Errorf("the record does not name %s: %q", r.Service, last)
	case secret != "" && strings.Contains(r.Err.Error()+last, secret):
		t.Errorf("%s: the error reveals the secret", r.Destination)
	}
}

// denies is like fails, for a failure that no later attempt can change: a queue gives the
// message up at once.
func denies(t *testing.T, s *notifier.Sender, url, want, secret string) {
	t.Helper()
	fails(t, s, url, want, secret)
	if r, _ := send(t, s, url, &notifier.Message{Body: "x"}); r.Temporary {
		t.Errorf("it is tried again: %v", r.Err)
	}
}
