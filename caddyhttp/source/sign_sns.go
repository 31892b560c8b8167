package source

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // of signature version 1, which is the default of Amazon SNS
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// snsAge is the maximum difference between the time of an SNS message and now.
const snsAge = time.Hour

// snsHost matches the hosts of Amazon SNS. Certificates and confirmations are fetched
// only from them.
var snsHost = lazyregexp.New(`^sns\.[a-z0-9-]{3,32}\.amazonaws\.com(\.cn)?$`)

// maxCertificates is the maximum number of cached certificates.
const maxCertificates = 16

// sns verifies the signatures of Amazon SNS and caches the certificates.
// See https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html.
type sns struct {
	mu           sync.Mutex
	certificates map[string]*x509.Certificate // by address
}

func newSNS() *sns { return &sns{certificates: map[string]*x509.Certificate{}} }

// verify implements verifier.
func (s *sns) verify(ctx context.Context, r *Request, fetch Fetcher) error {
	data, err := decodeJSON(r.Body)
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	field := func(name string) string { return text(get(data, name)) }
	signature, err := base64.StdEncoding.DecodeString(field("Signature"))
	if err != nil || len(signature) == 0 {
		return errNoSignature
	}
	at, err := time.Parse(time.RFC3339, field("Timestamp"))
	if err != nil {
		return errors.New("it has no time")
	}
	if age := r.Time.Sub(at); age > snsAge || age < -snsAge {
		return errors.New("its time is more than an hour from that of the gateway")
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
	if !isSNS(address) || !strings.HasSuffix(address, ".pem") {
		return nil, errors.New("its certificate is not at an address of Amazon SNS")
	}
	s.mu.Lock()
	c := s.certificates[address]
	s.mu.Unlock()
	if c == nil {
		text, err := fetch(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("getting the certificate: %w", err)
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, errors.New("its certificate is malformed")
		}
		if c, err = x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("its certificate is malformed")
		}
		s.mu.Lock()
		if len(s.certificates) >= maxCertificates {
			clear(s.certificates)
		}
		s.certificates[address] = c
		s.mu.Unlock()
	}
	if now.Before(c.NotBefore) || now.After(c.NotAfter) {
		return nil, errors.New("its certificate is not valid now")
	}
	return c, nil
}

// isSNS reports whether address is an HTTPS address of Amazon SNS.
func isSNS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Port() == "" && snsHost.MatchString(u.Host)
}

// Confirmation returns the address that confirms a subscription of Amazon SNS,
// or "" if r does not ask to confirm one. r must have passed Authenticate.
func (s *Source) Confirmation(r *Request) string {
	if s.Format.Scheme != schemeSNS && s.config.Scheme != schemeSNS {
		return ""
	}
	data, err := decodeJSON(r.Body)
	if err != nil || text(get(data, "Type")) != "SubscriptionConfirmation" {
		return ""
	}
	if address := text(get(data, "SubscribeURL")); isSNS(address) {
		return address
	}
	return ""
}
