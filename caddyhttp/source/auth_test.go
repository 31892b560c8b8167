package source

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // of signature version 1 of Amazon SNS
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func noFetch(context.Context, string) ([]byte, error) { return nil, errors.New("nothing is fetched") }

// authenticate returns the error of Authenticate, and checks that its status is 401.
func authenticate(t *testing.T, c Config, r *Request, fetch Fetcher) error {
	t.Helper()
	s, err := New(c)
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
	const secret, body = "s3cret", `{"title":"x"}`
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
		"github":                     {"github", secret, headers{"X-Hub-Signature-256": "sha256=" + sum(body)}, true},
		"github without a prefix":    {"github", secret, headers{"X-Hub-Signature-256": sum(body)}, false},
		"github with sha1":           {"github", secret, headers{"X-Hub-Signature": "sha1=" + sum(body)}, false},
		"github of another body":     {"github", secret, headers{"X-Hub-Signature-256": "sha256=" + sum(body+" ")}, false},
		"github, empty":              {"github", secret, headers{"X-Hub-Signature-256": "sha256="}, false},
		"sentry":                     {"sentry", secret, headers{"Sentry-Hook-Signature": sum(body)}, true},
		"sentry, too short":          {"sentry", secret, headers{"Sentry-Hook-Signature": sum(body)[:32]}, false},
		"sentry, none":               {"sentry", secret, nil, false},
		"grafana":                    {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(body)}, true},
		"grafana with a time":        {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(stamp(0) + ":" + body), "X-Grafana-Alerting-Timestamp": stamp(0)}, true},
		"grafana with an old time":   {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(stamp(-time.Hour) + ":" + body), "X-Grafana-Alerting-Timestamp": stamp(-time.Hour)}, false},
		"grafana without its time":   {"grafana", secret, headers{"X-Grafana-Alerting-Signature": sum(stamp(0) + ":" + body)}, false},
		"slack":                      {"slack", secret, headers{"X-Slack-Signature": "v0=" + sum("v0:"+stamp(0)+":"+body), "X-Slack-Request-Timestamp": stamp(0)}, true},
		"slack, old":                 {"slack", secret, headers{"X-Slack-Signature": "v0=" + sum("v0:"+stamp(-6*time.Minute)+":"+body), "X-Slack-Request-Timestamp": stamp(-6 * time.Minute)}, false},
		"slack, without a time":      {"slack", secret, headers{"X-Slack-Signature": "v0=" + sum("v0::"+body)}, false},
		"stripe":                     {"stripe", secret, headers{"Stripe-Signature": "t=" + stamp(0) + ",v1=" + sum(stamp(0)+"."+body) + ",v0=x"}, true},
		"stripe, the second matches": {"stripe", secret, headers{"Stripe-Signature": "t=" + stamp(0) + ",v1=" + sum("x") + ",v1=" + sum(stamp(0)+"."+body)}, true},
		"stripe, another time":       {"stripe", secret, headers{"Stripe-Signature": "t=" + stamp(time.Second) + ",v1=" + sum(stamp(0)+"."+body)}, false},
		"stripe, old":                {"stripe", secret, headers{"Stripe-Signature": "t=" + stamp(-6*time.Minute) + ",v1=" + sum(stamp(-6*time.Minute)+"."+body)}, false},
		"stripe, the eleventh":       {"stripe", secret, headers{"Stripe-Signature": "t=" + stamp(0) + strings.Repeat(",v1="+sum("x"), 10) + ",v1=" + sum(stamp(0)+"."+body)}, false},
		"standard":                   {"standard", "whsec_" + std, headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(0), "Webhook-Signature": standard(stamp(0))}, true},
		"standard without whsec_":    {"standard", std, headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(0), "Webhook-Signature": "v1a,x " + standard(stamp(0))}, true},
		"standard, another id":       {"standard", std, headers{"Webhook-Id": "other", "Webhook-Timestamp": stamp(0), "Webhook-Signature": standard(stamp(0))}, false},
		"standard, in the future":    {"standard", std, headers{"Webhook-Id": "id", "Webhook-Timestamp": stamp(time.Hour), "Webhook-Signature": standard(stamp(time.Hour))}, false},
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
	if err := authenticate(t, Config{Name: "github", Scheme: "github", Secret: secret}, &Request{Form: url.Values{"payload": {body}}}, noFetch); err == nil {
		t.Error("a multipart form without a signature is accepted")
	}
	if _, err := New(Config{Name: "github", Scheme: "standard", Secret: "no base64!"}); err == nil {
		t.Error("a secret that is not base64 is accepted")
	}
}

// TestTokens checks that tokens are found in the places where programs put them.
func TestTokens(t *testing.T) {
	const token = "t0ken"
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, tt := range map[string]struct {
		source string
		r      Request
		ok     bool
	}{
		"query":                 {"proxmox", Request{Query: url.Values{"token": {token}}}, true},
		"bearer":                {"proxmox", Request{Header: http.Header{"Authorization": {"bearer " + token}}}, true},
		"basic, not allowed":    {"proxmox", Request{Header: http.Header{"Authorization": {basic("u:" + token)}}}, false},
		"gitlab":                {"gitlab", Request{Header: http.Header{"X-Gitlab-Token": {token}}}, true},
		"seerr":                 {"seerr", Request{Header: http.Header{"Authorization": {token}}}, true},
		"cloudevents":           {"cloudevents", Request{Query: url.Values{"access_token": {token}}}, true},
		"gotify":                {"gotify", Request{Header: http.Header{"X-Gotify-Key": {token}}}, true},
		"ntfy, password":        {"ntfy", Request{Header: http.Header{"Authorization": {basic("user:" + token)}}}, true},
		"ntfy, token alone":     {"ntfy", Request{Header: http.Header{"Authorization": {basic(":" + token)}}}, true},
		"ntfy, in the query":    {"ntfy", Request{Query: url.Values{"auth": {base64.RawURLEncoding.EncodeToString([]byte("Bearer " + token))}}}, true},
		"slack, path":           {"slack", Request{Path: "services/T/B/" + token}, true},
		"slack, field":          {"slack", Request{Body: []byte(`{"token":"` + token + `"}`)}, true},
		"slack, form":           {"slack", Request{Body: []byte("token=" + token)}, true},
		"discord, path":         {"discord", Request{Path: "123/" + token}, true},
		"discord, another path": {"discord", Request{Path: token + "/123"}, false},
		"wrong":                 {"gotify", Request{Query: url.Values{"token": {token + "x"}}}, false},
		"empty":                 {"gotify", Request{Query: url.Values{"token": {""}}}, false},
		"none":                  {"gotify", Request{}, false},
	} {
		if err := authenticate(t, Config{Name: tt.source, Token: token}, &tt.r, noFetch); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// snsSigner signs messages as Amazon SNS does.
type snsSigner struct {
	key         *rsa.PrivateKey
	certificate []byte
	fetched     []string
}

func newSNSSigner(t *testing.T) *snsSigner {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &snsSigner{key: key, certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *snsSigner) fetch(_ context.Context, address string) ([]byte, error) {
	a.fetched = append(a.fetched, address)
	return a.certificate, nil
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

func TestSNS(t *testing.T) {
	a := newSNSSigner(t)
	message := func(change ...string) map[string]string {
		m := map[string]string{
			"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-central-1:1:ops", "Message": "hello\nworld", "Timestamp": "2026-11-20T08:00:00.000Z",
			"SignatureVersion": "2", "SigningCertURL": "https://sns.eu-central-1.amazonaws.com/x.pem",
		}
		for i := 0; i < len(change); i += 2 {
			m[change[i]] = change[i+1]
		}
		return m
	}
	for name, tt := range map[string]struct {
		m  map[string]string
		ok bool
	}{
		"version 2":            {message(), true},
		"version 1":            {message("SignatureVersion", "1"), true},
		"version 3":            {message("SignatureVersion", "3"), false},
		"with a subject":       {message("Subject", "s"), true},
		"China":                {message("SigningCertURL", "https://sns.cn-north-1.amazonaws.com.cn/x.pem"), true},
		"no signature":         {message("Signature", "!"), false},
		"another signature":    {message("Signature", "QUJD"), false},
		"old":                  {message("Timestamp", "2026-11-20T06:59:00.000Z"), false},
		"no time":              {message("Timestamp", "x"), false},
		"another host":         {message("SigningCertURL", "https://sns.eu-central-1.amazonaws.com.example.net/x.pem"), false},
		"a bucket":             {message("SigningCertURL", "https://mine.s3.amazonaws.com/x.pem"), false},
		"a user in the URL":    {message("SigningCertURL", "https://sns.eu-central-1.amazonaws.com@example.net/x.pem"), false},
		"a port":               {message("SigningCertURL", "https://sns.eu-central-1.amazonaws.com:8443/x.pem"), false},
		"without TLS":          {message("SigningCertURL", "http://sns.eu-central-1.amazonaws.com/x.pem"), false},
		"no certificate's URL": {message("SigningCertURL", "https://sns.eu-central-1.amazonaws.com/?x"), false},
	} {
		if err := authenticate(t, Config{Name: "sns"}, a.sign(t, tt.m), a.fetch); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range a.fetched {
		if !isSNS(address) {
			t.Errorf("%s was fetched", address)
		}
	}
	signed := a.sign(t, message())
	signed.Body = []byte(strings.Replace(string(signed.Body), "hello", "hallo", 1))
	if err := authenticate(t, Config{Name: "sns"}, signed, a.fetch); err == nil {
		t.Error("a changed message was accepted")
	}

	confirm := message("Type", "SubscriptionConfirmation", "Token", "t", "SubscribeURL", "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=t")
	s, err := New(Config{Name: "sns"})
	if err != nil {
		t.Fatal(err)
	}
	r := a.sign(t, confirm)
	if err := authenticate(t, Config{Name: "sns"}, r, a.fetch); err != nil {
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

func TestTypeOfColor(t *testing.T) {
	for color, want := range map[string]string{
		"#A32037": "failure", "#e01e5a": "failure", "#F00": "failure", "#ECB22E": "warning", "FFA500": "warning", "#2EB67D": "success", "#3AA337": "success",
		"#3AA3E3": "", "#764FA5": "", "#cccccc": "", "#000000": "", "nonsense": "", "": "", "#1234567": "",
	} {
		if got := typeOfColor(parseColor(color)); string(got) != want {
			t.Errorf("%s: %q, want %q", color, got, want)
		}
	}
}
