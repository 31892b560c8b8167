package source

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
)

// The signature schemes, for Scheme of a [Format] and a [Config].
const (
	SchemeFlux     = "flux"     // fluxcd.io, generic webhook with HMAC
	SchemeGitHub   = "github"   // docs.github.com, validating webhook deliveries
	SchemeGrafana  = "grafana"  // grafana.com, webhook notifier
	SchemeSentry   = "sentry"   // docs.sentry.io, integration platform webhooks
	SchemeStripe   = "stripe"   // docs.stripe.com, webhook signatures
	SchemeStandard = "standard" // standardwebhooks.com, docs.svix.com/receiving/verifying-payloads/how-manual
	SchemeSlack    = "slack"    // docs.slack.dev, verifying requests from Slack
	SchemeSNS      = "sns"      // docs.aws.amazon.com, verifying SNS messages
)

// Schemes returns the names of the signature schemes.
func Schemes() []string {
	return []string{SchemeFlux, SchemeGitHub, SchemeGrafana, SchemeSentry, SchemeStripe, SchemeStandard, SchemeSlack, SchemeSNS}
}

// NeedsSecret reports whether a scheme needs a secret.
func NeedsSecret(scheme string) bool { return scheme != SchemeSNS }

// signatureAge is the maximum difference between the time of a signature and now, for
// schemes that sign a time.
const signatureAge = 5 * time.Minute

// verifier checks the signature of a request.
type verifier func(ctx context.Context, r *Request, fetch Fetcher) error

var (
	errNoSignature    = errors.New("the request has none")
	errWrongSignature = errors.New("it does not match the body; compare the secrets of both sides")
)

// errEmptySecret is returned for a source whose secret or token is empty.
var errEmptySecret = errors.New("the secret is empty")

// newVerifier returns the verifier of a scheme, or nil if scheme is empty. roots are the root
// certificates for Amazon SNS; nil means the system's.
func newVerifier(scheme, secret string, roots *x509.CertPool) (verifier, error) {
	if scheme != "" && NeedsSecret(scheme) && strings.TrimSpace(strings.TrimPrefix(secret, standardwebhook.SecretPrefix)) == "" {
		return nil, errEmptySecret
	}
	key := []byte(secret)
	switch scheme {
	case "":
		return nil, nil
	case SchemeFlux:
		return prefixed(key, "X-Signature"), nil
	case SchemeGitHub:
		return prefixed(key, "X-Hub-Signature-256"), nil
	case SchemeSentry:
		return func(_ context.Context, r *Request, _ Fetcher) error {
			return checkHex(key, r.Body, r.Header.Get("Sentry-Hook-Signature"))
		}, nil
	case SchemeGrafana:
		return func(_ context.Context, r *Request, _ Fetcher) error {
			signed := r.Body
			for _, name := range []string{"X-Grafana-Alerting-Timestamp", "X-Grafana-Alerting-Signature-Timestamp"} {
				if at := r.Header.Get(name); at != "" {
					if err := checkTime(at, r.Time); err != nil {
						return err
					}
					signed = concat(at+":", r.Body)
					break
				}
			}
			return checkHex(key, signed, r.Header.Get("X-Grafana-Alerting-Signature"))
		}, nil
	case SchemeSlack:
		return func(_ context.Context, r *Request, _ Fetcher) error {
			at := r.Header.Get("X-Slack-Request-Timestamp")
			sum, ok := strings.CutPrefix(r.Header.Get("X-Slack-Signature"), "v0=")
			if !ok {
				return errNoSignature
			}
			if err := checkTime(at, r.Time); err != nil {
				return err
			}
			return checkHex(key, concat("v0:"+at+":", r.Body), sum)
		}, nil
	case SchemeStripe:
		return func(_ context.Context, r *Request, _ Fetcher) error { return checkStripe(key, r) }, nil
	case SchemeStandard:
		key, err := standardwebhook.ParseKey(secret)
		if err != nil {
			return nil, fmt.Errorf("the secret of the scheme standard %w", err)
		}
		return func(_ context.Context, r *Request, _ Fetcher) error { return checkStandard(key, r) }, nil
	case SchemeSNS:
		return newSNS(roots).verify, nil
	}
	return nil, fmt.Errorf("there is no signature scheme %s; use %s", scheme, strings.Join(Schemes(), ", "))
}

// prefixed returns the verifier for a header with sha256= and the signature of the body.
func prefixed(key []byte, header string) verifier {
	return func(_ context.Context, r *Request, _ Fetcher) error {
		sum, ok := strings.CutPrefix(r.Header.Get(header), "sha256=")
		if !ok {
			return errNoSignature
		}
		return checkHex(key, r.Body, sum)
	}
}

func concat(prefix string, body []byte) []byte { return slices.Concat([]byte(prefix), body) }

// sign returns the HMAC-SHA256 of a text.
func sign(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(text)
	return m.Sum(nil)
}

// checkHex returns an error if sum is not the HMAC-SHA256 of text in hexadecimal.
func checkHex(key, text []byte, sum string) error {
	if sum == "" {
		return errNoSignature
	}
	got, err := hex.DecodeString(strings.TrimSpace(sum))
	if err != nil || !hmac.Equal(got, sign(key, text)) {
		return errWrongSignature
	}
	return nil
}

// checkTime returns an error if s, a number of seconds since 1970, differs from now by
// more than signatureAge.
func checkTime(s string, now time.Time) error {
	seconds, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return errors.New("it has no time")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > signatureAge || age < -signatureAge {
		return fmt.Errorf("its time differs from the gateway's by more than %d minutes; recorded requests are refused, and clocks must agree",
			int(signatureAge.Minutes()))
	}
	return nil
}

// checkStripe checks the header Stripe-Signature: t=…,v1=….
func checkStripe(key []byte, r *Request) error {
	var at string
	var sums []string
	for part := range strings.SplitSeq(r.Header.Get("Stripe-Signature"), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			at = value
		case "v1":
			sums = append(sums, value)
		}
	}
	if len(sums) == 0 {
		return errNoSignature
	}
	if err := checkTime(at, r.Time); err != nil {
		return err
	}
	return checkAny(sums, func(sum string) error { return checkHex(key, concat(at+".", r.Body), sum) })
}

// checkStandard checks the headers of Standard Webhooks, or Svix's headers with the same values:
// svix-id, svix-timestamp and svix-signature.
func checkStandard(key standardwebhook.Key, r *Request) error {
	prefix := "Webhook-"
	if r.Header.Get("Webhook-Id") == "" {
		prefix = "Svix-"
	}
	id, at, signatures := r.Header.Get(prefix+"Id"), r.Header.Get(prefix+"Timestamp"), r.Header.Get(prefix+"Signature")
	if id == "" || signatures == "" {
		return errNoSignature
	}
	if err := checkTime(at, r.Time); err != nil {
		return err
	}
	if !key.Verify(id, at, signatures, bytes.NewReader(r.Body)) {
		return errWrongSignature
	}
	return nil
}

// maxSignatures is the maximum number of signatures checked per request. Programs send several
// while a secret is being replaced.
const maxSignatures = 10

// checkAny returns nil if check accepts one of the signatures.
func checkAny(sums []string, check func(string) error) error {
	for _, sum := range sums[:min(len(sums), maxSignatures)] {
		if check(sum) == nil {
			return nil
		}
	}
	return errWrongSignature
}
