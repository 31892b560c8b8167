package servicetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// bubbleTime is before the time at which bubbles of package synctest begin.
var bubbleTime = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// CA signs the certificates of servers in tests.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewTrustedCA makes the only CA that the test program trusts. The system's CAs
// are read once for the whole program, so call it when the package is
// initialized:
//
//	var testCA = servicetest.NewTrustedCA()
func NewTrustedCA() *CA {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of the tests"},
		NotBefore: bubbleTime, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	trust(cert)
	return &CA{cert, key}
}

// Pair returns the certificate of the CA and its key.
func (c *CA) Pair() (*x509.Certificate, *ecdsa.PrivateKey) { return c.cert, c.key }

// trust has crypto/x509 read a file with this certificate as the system's CAs.
func trust(cert *x509.Certificate) {
	f, err := os.CreateTemp("", "ca-*.pem")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	if err := pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}); err != nil {
		panic(err)
	}
	_ = f.Close()
	before, had := os.LookupEnv("SSL_CERT_FILE")
	_ = os.Setenv("SSL_CERT_FILE", f.Name())
	_, _ = x509.SystemCertPool()
	_ = os.Unsetenv("SSL_CERT_FILE")
	if had {
		_ = os.Setenv("SSL_CERT_FILE", before)
	}
}

// Certificate returns a configuration with a certificate for the names, which
// may be IP addresses.
func (a *CA) Certificate(t testing.TB, names ...string) *tls.Config {
	t.Helper()
	return certificate(t, a.cert, a.key, names)
}

// SelfSigned returns a configuration with a certificate that no CA signed.
func SelfSigned(t testing.TB, names ...string) *tls.Config {
	t.Helper()
	return certificate(t, nil, nil, append(names, "127.0.0.1"))
}

// certificate returns a certificate that ca has signed, or itself if ca is nil.
func certificate(t testing.TB, ca *x509.Certificate, caKey *ecdsa.PrivateKey, names []string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of the tests"},
		NotBefore: bubbleTime, NotAfter: time.Now().Add(time.Hour),
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	if ca == nil {
		ca, caKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
