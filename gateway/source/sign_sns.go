package source

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // for signature version 1, the default of Amazon SNS
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// snsAge is the maximum difference between the time of an SNS message and now.
const snsAge = time.Hour

var (
	// snsHost matches the hosts of Amazon SNS. Confirmations are fetched only from them.
	snsHost = lazyregexp.New(`^sns\.[a-z0-9-]{3,32}\.amazonaws\.com(\.cn)?$`)

	// snsCertificate matches the address of a certificate of Amazon SNS and captures the region and
	// the domain.
	snsCertificate = lazyregexp.New(`^https://sns\.([a-z0-9-]{3,32})\.(amazonaws\.com(?:\.cn)?)/` +
		`SimpleNotificationService-[0-9a-f]{16,64}\.pem$`)
)

// maxCertificates is the maximum number of cached certificates.
const maxCertificates = 16

// maxIssuers is the maximum number of certificates fetched between Amazon SNS's own and a root.
const maxIssuers = 3

// sns verifies the signatures of Amazon SNS and caches the certificates.
// See https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html.
type sns struct {
	roots *x509.CertPool // nil for the system's

	mu     sync.Mutex
	chains map[string]*snsChain // by the address of the certificate
}

// snsChain is a certificate of Amazon SNS with its issuers.
type snsChain struct {
	certificate *x509.Certificate
	issuers     *x509.CertPool
	names       []string // the certificate must be for one of these hosts
}

func newSNS(roots *x509.CertPool) *sns { return &sns{roots: roots, chains: map[string]*snsChain{}} }

// verify implements verifier.
func (s *sns) verify(ctx context.Context, r *Request, fetch Fetcher) error {
	data, err := payload.Decode(r.Text())
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	field := func(name string) string { return payload.Text(payload.Get(data, name)) }
	signature, err := base64.StdEncoding.DecodeString(field("Signature"))
	if err != nil || len(signature) == 0 {
		return errNoSignature
	}
	at, err := time.Parse(time.RFC3339, field("Timestamp"))
	if err != nil {
		return errors.New("it has no time")
	}
	if age := r.Time.Sub(at); age > snsAge || age < -snsAge {
		return errors.New("its time differs from the gateway's by more than an hour")
	}
	c, err := s.certificate(ctx, field("SigningCertURL"), r.Time, fetch)
	if err != nil {
		return err
	}
	key, ok := c.PublicKey.(*rsa.PublicKey)
	if !ok {
		return errors.New("the certificate has no RSA key")
	}
	signed := snsText(field)
	switch version := field("SignatureVersion"); version {
	case "1":
		sum := sha1.Sum([]byte(signed)) //nolint:gosec // see the import
		err = rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature)
	case "2":
		sum := sha256.Sum256([]byte(signed))
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature)
	default:
		return errors.New("its version is neither 1 nor 2")
	}
	if err != nil {
		return errors.New("it does not match the message")
	}
	return nil
}

// snsText returns the signed text of a message with the fields.
func snsText(field func(string) string) string {
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if field("Type") != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	var b strings.Builder
	for _, name := range names {
		if value := field(name); value != "" || name != "Subject" {
			b.WriteString(name + "\n" + value + "\n")
		}
	}
	return b.String()
}

// certificate returns the certificate at an address of Amazon SNS, if it is valid now.
func (s *sns) certificate(ctx context.Context, address string, now time.Time, fetch Fetcher) (*x509.Certificate, error) {
	names := snsNames(address)
	if names == nil {
		return nil, errors.New("its certificate is not at an address of Amazon SNS")
	}
	s.mu.Lock()
	c := s.chains[address]
	s.mu.Unlock()
	if c != nil {
		return c.certificate, s.check(c, now)
	}
	text, err := fetch(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("getting the certificate: %w", err)
	}
	certificates, err := parseCertificates(text)
	if err != nil {
		return nil, err
	}
	c = &snsChain{certificate: certificates[0], issuers: x509.NewCertPool(), names: names}
	for _, issuer := range certificates[1:] {
		c.issuers.AddCert(issuer)
	}
	if err := s.complete(ctx, c, now, fetch); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.chains) >= maxCertificates {
		clear(s.chains)
	}
	s.chains[address] = c
	return c.certificate, nil
}

// complete checks a chain. Amazon's file has only the certificate itself, so complete fetches the
// issuers until the chain leads to a root.
func (s *sns) complete(ctx context.Context, c *snsChain, now time.Time, fetch Fetcher) error {
	last := c.certificate
	for range maxIssuers {
		err := s.check(c, now)
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok || len(last.IssuingCertificateURL) == 0 {
			return err
		}
		text, err := fetch(ctx, last.IssuingCertificateURL[0])
		if err != nil {
			return fmt.Errorf("getting the certificate of the issuer: %w", err)
		}
		issuers, err := parseCertificates(text)
		if err != nil {
			return err
		}
		last = issuers[0]
		c.issuers.AddCert(last)
	}
	return s.check(c, now)
}

// check returns an error unless the certificate is for Amazon SNS, valid now, and leads
// to a root.
func (s *sns) check(c *snsChain, now time.Time) error {
	if !slices.ContainsFunc(c.names, func(name string) bool { return c.certificate.VerifyHostname(name) == nil }) {
		return errors.New("its certificate is not one of Amazon SNS")
	}
	if now.Before(c.certificate.NotBefore) || now.After(c.certificate.NotAfter) {
		return errors.New("its certificate is not valid now")
	}
	if _, err := c.certificate.Verify(x509.VerifyOptions{Roots: s.roots, Intermediates: c.issuers, CurrentTime: now}); err != nil {
		return fmt.Errorf("its certificate is not trusted: %w", err)
	}
	return nil
}

// snsNames returns the hosts that the certificate at an address may be for, or nil if address is
// not one of Amazon SNS's certificates. The hosts are the same as in Amazon's SDKs: most regions
// share one certificate, and the others have their own.
func snsNames(address string) []string {
	m := snsCertificate.FindStringSubmatch(address)
	if m == nil {
		return nil
	}
	region, domain := m[1], m[2]
	names := []string{"sns." + region + "." + domain, "sns-signing." + region + "." + domain, "sns-" + region + "." + domain}
	if domain == "amazonaws.com" {
		names = append(names, "sns.amazonaws.com")
	}
	if strings.HasPrefix(region, "us-gov-") {
		names = append(names, "sns-us-gov-west-1.amazonaws.com")
	}
	return names
}

// parseCertificates returns the certificates in a file, which is PEM, or DER with one
// certificate. There is at least one.
func parseCertificates(text []byte) (out []*x509.Certificate, err error) {
	var der []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		der = append(der, block.Bytes...)
	}
	if der == nil {
		der = text
	}
	if out, err = x509.ParseCertificates(der); err != nil || len(out) == 0 {
		return nil, errors.New("its certificate is malformed")
	}
	return out, nil
}

// isSNS reports whether address is an HTTPS address of Amazon SNS.
func isSNS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Port() == "" && snsHost.MatchString(u.Host)
}

// Confirmation returns the address that confirms a subscription of Amazon SNS, or "" if r does not
// ask for a confirmation. r must have passed Authenticate.
func (s *Source) Confirmation(r *Request) string {
	if s.Format.Scheme != SchemeSNS && s.config.Scheme != SchemeSNS {
		return ""
	}
	data, err := payload.Decode(r.Text())
	if err != nil || payload.Text(payload.Get(data, "Type")) != "SubscriptionConfirmation" {
		return ""
	}
	if address := payload.Text(payload.Get(data, "SubscribeURL")); isSNS(address) {
		return address
	}
	return ""
}
