package source

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // of signature version 1 of Amazon SNS
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func noFetch(context.Context, string) ([]byte, error) { return nil, errors.New("nothing is fetched") }

// authenticate returns the error of Authenticate, and checks that its status is 401.
func authenticate(t *testing.T, c Config, r *Request, fetch Fetcher) error {
	t.Helper()
	return authenticateWith(t, c, nil, r, fetch)
}

// authenticateWith is like authenticate with the roots of certificates.
func authenticateWith(t *testing.T, c Config, roots *x509.CertPool, r *Request, fetch Fetcher) error {
	t.Helper()
	s, err := newSource(c, roots)
	if err != nil {
		t.Fatal(err)
	}
	if r.Query == nil {
		r.Query = url.Values{}
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Time = now
	err = s.Authenticate(t.Context(), r, fetch)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != 401 {
			t.Errorf("%v is not a 401", err)
		}
	}
	return err
}

// TestSignatures checks that each scheme accepts the signatures of its programs within
// the allowed time, and no others.
func TestSignatures(t *testing.T) {
	const secret, body = "a s3cret of 24 characters", `{"title":"x"}`
	sum := func(text string) string { return hex.EncodeToString(sign([]byte(secret), []byte(text))) }
	stamp := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	std := base64.StdEncoding.EncodeToString([]byte(secret))
	standard := func(at string) string {
		return "v1," + base64.StdEncoding.EncodeToString(sign([]byte(secret), []byte("id."+at+"."+body)))
	}
	type headers map[string]string
	for name, tt := range map[string]struct {
		scheme, secret string
		headers        headers
		ok             bool
	}{
		"flux":                    {"flux", secret, headers{"X-Signature": "sha256=" + sum(body)}, true},
		"flux, another algorithm": {"flux", secret, headers{"X-Signature": "sha512=" + sum(body)}, false},
		"flux of another body":    {"flux", secret, headers{"X-Signature": "sha256=" + sum(body+" ")}, false},
		"github":                  {"github", secret, headers{"X-Hub-Signature-256": "sha256=" + sum(body)}, true},
		"github without a prefix": {"github", secret, headers{"X-Hub-Signature-256": sum(body)}, false},
		"github with sha1":        {"github", secret, headers{"X-Hub-Signature": "sha1=" + sum(body)}, false},
		"github of another body":  {"github", secret, headers{"X-Hub-Signature-256": "sha256=" + sum(body+" ")}, false},
		"github, empty":           {"github", secret, headers{"X-Hub-Signature-256": "sha256="}, false},
		"sentry":                  {"sentry", secret, headers{"Sentry-Hook-Signature": sum(body)}, true},
		"sentry, too short":       {"sentry", secret, headers{"Sentry-Hook-Signature": sum(body)[:32]}, false},
		"sentry, none":            {"sentry", secret, nil, false},
		"grafana":                 {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(body)}, true},
		"grafana with a time": {
			"grafana", secret,
			headers{"X-Grafana-Alerting-Signature": sum(stamp(0) + ":" + body), "X-Grafana-Alerting-Timestamp": stamp(0)},
			true,
		},
		"grafana with an old time": {
			"grafana", secret,
			headers{"X-Grafana-Alerting-Signature": sum(stamp(-time.Hour) + ":" + body), "X-Grafana-Alerting-Timestamp": stamp(-time.Hour)},
			false,
		},
		"grafana without its time": {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(stamp(0) + ":" + body)}, false},
		"slack": {
			"slack", secret,
			headers{"X-Slack-Signature": "v0=" + sum("v0:"+stamp(0)+":"+body), "X-Slack-Request-Timestamp": stamp(0)},
			true,
		},
		"slack, old": {
			"slack", secret,
			headers{"X-Slack-Signature": "v0=" + sum("v0:"+stamp(-6*time.Minute)+":"+body), "X-Slack-Request-Timestamp": stamp(-6 * time.Minute)},
			false,
		},
		"slack, without a time": {"slack", secret, headers{"X-Slack-Signature": "v0=" + sum("v0::"+body)}, false},
		"stripe": {
			"stripe", secret,
			headers{"Stripe-Signature": "t=" + stamp(0) + ",v1=" + sum(stamp(0)+"."+body) + ",v0=x"},
			true,
		},
		"stripe, the second matches": {
			"stripe", secret,
			headers{"Stripe-Signature": "t=" + stamp(0) + ",v1=" + sum("x") + ",v1=" + sum(stamp(0)+"."+body)},
			true,
		},
		"stripe, another time": {
			"stripe", secret,
			headers{"Stripe-Signature": "t=" + stamp(time.Second) + ",v1=" + sum(stamp(0)+"."+body)},
			false,
		},
		"stripe, old": {
			"stripe", secret,
			headers{"Stripe-Signature": "t=" + stamp(-6*time.Minute) + ",v1=" + sum(stamp(-6*time.Minute)+"."+body)},
			false,
		},
		"stripe, the eleventh": {
			"stripe", secret,
			headers{"Stripe-Signature": "t=" + stamp(0) + strings.Repeat(",v1="+sum("x"), 10) + ",v1=" + sum(stamp(0)+"."+body)},
			false,
		},
		"standard": {
			"standard", "whsec_" + std,
			headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(0), "Webhook-Signature": standard(stamp(0))},
			true,
		},
		"standard without whsec_": {
			"standard", std,
			headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(0), "Webhook-Signature": "v1a,x " + standard(stamp(0))},
			true,
		},
		"svix": {
			"standard", "whsec_" + std,
			headers{"Svix-Id": "id", "Svix-Timestamp": stamp(0), "Svix-Signature": "v1,x " + standard(stamp(0))},
			true,
		},
		"svix, another id": {
			"standard", std,
			headers{"Svix-Id": "other", "Svix-Timestamp": stamp(0), "Svix-Signature": standard(stamp(0))},
			false,
		},
		"svix, too old": {
			"standard", std,
			headers{"Svix-Id": "id", "Svix-Timestamp": stamp(-time.Hour), "Svix-Signature": standard(stamp(-time.Hour))},
			false,
		},
		"half of each": {
			"standard", std,
			headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(0), "Svix-Signature": standard(stamp(0))},
			false,
		},
		"standard, another id": {
			"standard", std,
			headers{"Webhook-Id": "other", "Webhook-Timestamp": stamp(0), "Webhook-Signature": standard(stamp(0))},
			false,
		},
		"standard, in the future": {
			"standard", std,
			headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(time.Hour), "Webhook-Signature": standard(stamp(time.Hour))},
			false,
		},
	} {
		r := &Request{Body: []byte(body), Header: http.Header{}}
		for name, value := range tt.headers {
			r.Header.Set(name, value)
		}
		err := authenticate(t, Config{Name: "mine", Templates: Templates{Title: "x"}, Scheme: tt.scheme, Secret: tt.secret}, r, noFetch)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), sum(body))) {
			t.Errorf("%s: the error has a secret: %v", name, err)
		}
	}
	if err := authenticate(t, Config{Name: "github", Scheme: "github", Secret: secret}, &Request{Form: url.Values{"payload": {body}}},
		noFetch); err == nil {
		t.Error("a multipart form without a signature is accepted")
	}
}

// TestSecretsRefused checks that a secret that anyone could know is refused when the
// configuration loads. The prefix alone was once an empty key, so that everyone could
// sign.
func TestSecretsRefused(t *testing.T) {
	type secret struct{ scheme, secret string }
	refused := []secret{
		{"standard", "no base64!"},
		{"standard", "whsec_"},
		{"standard", "whsec_QQ=="},
		{"standard", base64.StdEncoding.EncodeToString(make([]byte, 15))},
	}
	for _, scheme := range Schemes() {
		if NeedsSecret(scheme) {
			refused = append(refused, secret{scheme, ""}, secret{scheme, " "}, secret{scheme, "whsec_"}, secret{scheme, "whsec_ "})
		}
	}
	for _, s := range refused {
		if _, err := New(Config{Name: "github", Scheme: s.scheme, Secret: s.secret}); err == nil {
			t.Errorf("the secret %q of the scheme %s is accepted", s.secret, s.scheme)
		}
	}
	if _, err := New(Config{
		Name: "github", Scheme: "standard",
		Secret: "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 16)),
	}); err != nil {
		t.Errorf("a secret of 16 bytes: %v", err)
	}
	if _, err := New(Config{Name: "github", Token: " "}); err == nil {
		t.Error("an empty token is accepted")
	}
}

// snsSigner signs messages as Amazon SNS does. As with Amazon, the file with its certificate does
// not include the issuers' certificates.
type snsSigner struct {
	roots   *x509.CertPool
	key     *rsa.PrivateKey
	files   map[string][]byte // by address
	fetched []string
}

// The addresses of a certificate of SNS and of its issuer.
const (
	snsPEM    = "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
	snsIssuer = "http://crt.example.net/issuer.cer"
)

// snsKey returns the key of all signers. It takes long to make.
var snsKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// newSNSSigner returns a signer whose certificate, as changed by change, is at address.
func newSNSSigner(t *testing.T, address string, change func(*x509.Certificate)) *snsSigner {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	rootKey, issuerKey := key(), key()
	a := &snsSigner{roots: x509.NewCertPool(), key: snsKey()}
	create := func(c, issuer *x509.Certificate, public crypto.PublicKey, signer *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, issuer, public, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	ca := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour),
		}
	}
	root, issuer := ca("root"), ca("issuer")
	rootCertificate, err := x509.ParseCertificate(create(root, root, &rootKey.PublicKey, rootKey))
	if err != nil {
		t.Fatal(err)
	}
	a.roots.AddCert(rootCertificate)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "sns.amazonaws.com"}, DNSNames: []string{"sns.amazonaws.com"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IssuingCertificateURL: []string{snsIssuer},
	}
	if change != nil {
		change(c)
	}
	a.files = map[string][]byte{
		snsIssuer: create(issuer, root, &issuerKey.PublicKey, rootKey),
		address:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: create(c, issuer, &a.key.PublicKey, issuerKey)}),
	}
	return a
}

func (a *snsSigner) fetch(_ context.Context, address string) ([]byte, error) {
	a.fetched = append(a.fetched, address)
	if file := a.files[address]; file != nil {
		return file, nil
	}
	return nil, errors.New("not found")
}

func (a *snsSigner) sign(t *testing.T, m map[string]string) *Request {
	t.Helper()
	signed := snsText(func(name string) string { return m[name] })
	var sum []byte
	hash := crypto.SHA256
	if m["SignatureVersion"] == "1" {
		s := sha1.Sum([]byte(signed)) //nolint:gosec // see the import
		sum, hash = s[:], crypto.SHA1
	} else {
		s := sha256.Sum256([]byte(signed))
		sum = s[:]
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, hash, sum)
	if err != nil {
		t.Fatal(err)
	}
	if m["Signature"] == "" {
		m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Body: body}
}

// snsMessage returns the fields of a message whose certificate is at address. change has
// names and values to replace.
func snsMessage(address string, change ...string) map[string]string {
	m := map[string]string{
		"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-central-1:1:ops", "Message": "hello\nworld",
		"Timestamp":        "2026-11-20T08:00:00.000Z",
		"SignatureVersion": "2", "SigningCertURL": address,
	}
	for i := 0; i < len(change); i += 2 {
		m[change[i]] = change[i+1]
	}
	return m
}

func TestSNS(t *testing.T) {
	a := newSNSSigner(t, snsPEM, nil)
	message := func(change ...string) map[string]string { return snsMessage(snsPEM, change...) }
	for name, tt := range map[string]struct {
		m  map[string]string
		ok bool
	}{
		"version 2":          {message(), true},
		"version 1":          {message("SignatureVersion", "1"), true},
		"version 3":          {message("SignatureVersion", "3"), false},
		"with a subject":     {message("Subject", "s"), true},
		"no signature":       {message("Signature", "!"), false},
		"another signature":  {message("Signature", "QUJD"), false},
		"old":                {message("Timestamp", "2026-11-20T06:59:00.000Z"), false},
		"no time":            {message("Timestamp", "x"), false},
		"no certificate":     {message("SigningCertURL", ""), false},
		"a certificate gone": {message("SigningCertURL", strings.Replace(snsPEM, "0123", "3210", 1)), false},
	} {
		if err := authenticateWith(t, Config{Name: "sns"}, a.roots, a.sign(t, tt.m), a.fetch); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	signed := a.sign(t, message())
	signed.Body = []byte(strings.Replace(string(signed.Body), "hello", "hallo", 1))
	if err := authenticateWith(t, Config{Name: "sns"}, a.roots, signed, a.fetch); err == nil {
		t.Error("a changed message was accepted")
	}
	if err := authenticate(t, Config{Name: "sns"}, a.sign(t, message()), a.fetch); err == nil ||
		!strings.Contains(err.Error(), "its certificate is not trusted") {
		t.Errorf("with the roots of the system: %v", err)
	}

	// A certificate is fetched once, and checked for each message.
	s, err := newSource(Config{Name: "sns"}, a.roots)
	if err != nil {
		t.Fatal(err)
	}
	a.fetched = nil
	for _, at := range []time.Time{now, now.Add(time.Minute)} {
		r := a.sign(t, message())
		r.Time = at
		if err := s.Authenticate(t.Context(), r, a.fetch); err != nil {
			t.Error(err)
		}
	}
	if want := []string{snsPEM, snsIssuer}; !slices.Equal(a.fetched, want) {
		t.Errorf("%q were fetched, want %q", a.fetched, want)
	}
	late := a.sign(t, message("Timestamp", "2026-11-20T09:00:01.000Z"))
	late.Time = now.Add(time.Hour + time.Second)
	if err := s.Authenticate(t.Context(), late, a.fetch); err == nil || !strings.Contains(err.Error(), "not valid now") {
		t.Errorf("a certificate that has expired meanwhile: %v", err)
	}

	confirm := message("Type", "SubscriptionConfirmation", "Token", "t", "SubscribeURL",
		"https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=t")
	r := a.sign(t, confirm)
	if err := authenticateWith(t, Config{Name: "sns"}, a.roots, r, a.fetch); err != nil {
		t.Error(err)
	}
	if got := s.Confirmation(r); got != confirm["SubscribeURL"] {
		t.Errorf("the subscription is confirmed at %q", got)
	}
	confirm["SubscribeURL"] = "https://example.net/?Action=ConfirmSubscription"
	if got := s.Confirmation(a.sign(t, confirm)); got != "" {
		t.Errorf("the subscription is confirmed at %s", got)
	}
}

// TestSNSAddresses checks that nothing is fetched from an address that is not exactly
// one of a certificate of Amazon SNS.
func TestSNSAddresses(t *testing.T) {
	a := newSNSSigner(t, snsPEM, nil)
	const host, path = "https://sns.eu-central-1.amazonaws.com", "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
	for _, address := range []string{
		"", "x", host, host + "/x.pem", host + "/?x.pem", host + path + "?x", host + path + "#x", host + path + "/", host + path + "\n",
		" " + host + path,
		host + "/x" + path, host + "//SimpleNotificationService-0123456789abcdef.pem", host + "/SimpleNotificationService-.pem",
		host + "/SimpleNotificationService-../x.pem", host + "/SimpleNotificationService-0123456789ABCDEFG.pem",
		host + strings.Replace(path, "-", "%2D", 1),
		host + ":443" + path, host + ":8443" + path, "http://sns.eu-central-1.amazonaws.com" + path,
		"https://user@sns.eu-central-1.amazonaws.com" + path,
		"https://sns.eu-central-1.amazonaws.com.example.net" + path, "https://sns.eu-central-1.amazonaws.com@example.net" + path,
		"https://mine.s3.amazonaws.com" + path, "https://sns.amazonaws.com" + path, "https://sns.a.b.amazonaws.com" + path,
		"https://xsns.eu-central-1.amazonaws.com" + path,
	} {
		if err := authenticateWith(t, Config{Name: "sns"}, a.roots, a.sign(t, snsMessage(address)), a.fetch); err == nil ||
			!strings.Contains(err.Error(), "not at an address of Amazon SNS") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if len(a.fetched) != 0 {
		t.Errorf("%q were fetched", a.fetched)
	}
}

// TestSNSCertificates checks that a certificate must be one of Amazon SNS for its region,
// be valid, and lead to a root.
func TestSNSCertificates(t *testing.T) {
	const name = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
	region := func(host string) string { return "https://sns." + host + name }
	names := func(names ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.DNSNames = names }
	}
	for what, tt := range map[string]struct {
		address string
		change  func(*x509.Certificate)
		want    string // a part of the error; "" if the message is accepted
	}{
		"the common one": {snsPEM, nil, ""},
		"that of a region": {
			region("af-south-1.amazonaws.com"),
			names("sns-signing.af-south-1.amazonaws.com", "sns.af-south-1.amazonaws.com"), "",
		},
		"that of a region, one name": {region("ap-east-1.amazonaws.com"), names("sns-signing.ap-east-1.amazonaws.com"), ""},
		"China":                      {region("cn-north-1.amazonaws.com.cn"), names("sns-cn-north-1.amazonaws.com.cn"), ""},
		"GovCloud":                   {region("us-gov-east-1.amazonaws.com"), names("sns-us-gov-west-1.amazonaws.com"), ""},
		"that of another region":     {snsPEM, names("sns-signing.af-south-1.amazonaws.com"), "not one of Amazon SNS"},
		"the common one, in China":   {region("cn-north-1.amazonaws.com.cn"), nil, "not one of Amazon SNS"},
		"that of another service":    {snsPEM, names("sqs.eu-central-1.amazonaws.com", "amazonaws.com"), "not one of Amazon SNS"},
		"without a name":             {snsPEM, names(), "not one of Amazon SNS"},
		"expired":                    {snsPEM, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }, "not valid now"},
		"not valid yet":              {snsPEM, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) }, "not valid now"},
		"without its issuer":         {snsPEM, func(c *x509.Certificate) { c.IssuingCertificateURL = nil }, "not trusted"},
		"an issuer that is not there": {
			snsPEM, func(c *x509.Certificate) { c.IssuingCertificateURL[0] += "x" },
			"getting the certificate of the issuer",
		},
	} {
		a := newSNSSigner(t, tt.address, tt.change)
		err := authenticateWith(t, Config{Name: "sns"}, a.roots, a.sign(t, snsMessage(tt.address)), a.fetch)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", what, err, tt.want)
		}
	}

	// Issuers that never lead to a root are not fetched without end.
	a := newSNSSigner(t, snsPEM, nil)
	delete(a.files, snsIssuer)
	other := newSNSSigner(t, snsPEM, nil)
	a.files[snsIssuer] = other.files[snsPEM]
	if err := authenticateWith(t, Config{Name: "sns"}, a.roots, a.sign(t, snsMessage(snsPEM)), a.fetch); err == nil ||
		len(a.fetched) != 1+maxIssuers {
		t.Errorf("issuers in a circle: %v, %d fetched", err, len(a.fetched))
	}
	a.files[snsIssuer] = []byte("x")
	if err := authenticateWith(t, Config{Name: "sns"}, a.roots, a.sign(t, snsMessage(snsPEM)), a.fetch); err == nil ||
		!strings.Contains(err.Error(), "malformed") {
		t.Errorf("a malformed issuer: %v", err)
	}
}
