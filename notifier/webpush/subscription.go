package webpush

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Subscription is the subscription of a browser, as PushSubscription.toJSON of the Push
// API returns it. [Subscription.Parse] makes it ready for use.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     struct {
		P256DH string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`

	public *ecdh.PublicKey
	auth   []byte
}

// Parse checks the endpoint and decodes the keys.
func (s *Subscription) Parse() error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("the subscription has no https endpoint; give the result of PushSubscription.toJSON")
	}
	point, err := decode(s.Keys.P256DH)
	if err != nil {
		return errKeys
	}
	if s.public, err = ecdh.P256().NewPublicKey(point); err != nil {
		return errKeys
	}
	if s.auth, err = decode(s.Keys.Auth); err != nil || len(s.auth) == 0 {
		return errKeys
	}
	return nil
}

var errKeys = errors.New("the keys of the subscription are not valid; give the result of PushSubscription.toJSON")

// authSize is the size in bytes of the authentication secret (RFC 8291, section 3.2).
const authSize = 16

// CheckAuth returns an error if no browser can decrypt messages to the subscription, because its
// authentication secret has the wrong length. Parse has decoded it.
func (s *Subscription) CheckAuth() error {
	if len(s.auth) != authSize {
		return fmt.Errorf("the key auth has %d bytes, and must have %d (RFC 8291); give the result of PushSubscription.toJSON",
			len(s.auth), authSize)
	}
	return nil
}

// Host returns the name of the push service's host, in lower case and without a port.
func (s *Subscription) Host() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return "" // Parse has checked it
	}
	return strings.ToLower(u.Hostname())
}

// origin returns the scheme, host and port of the push service.
func (s *Subscription) origin() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return "" // Parse has checked it
	}
	return u.Scheme + "://" + u.Host
}

// decode decodes base64 of either alphabet, with or without padding.
func decode(s string) ([]byte, error) {
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	return base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
}
