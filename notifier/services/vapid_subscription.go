package services

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"path"
	"strings"
)

// pushSubscription is the subscription of a browser, as PushSubscription.toJSON of
// the Push API returns it.
type pushSubscription struct {
	Endpoint string `json:"endpoint"`
	Keys     struct {
		P256DH string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`

	public *ecdh.PublicKey
	auth   []byte
}

// readSubscriptions reads one subscription, or an object of subscriptions by name.
// It returns them by name in lower case. The name of a single subscription is the
// end of its address.
func readSubscriptions(data []byte) (map[string]*pushSubscription, error) {
	var one pushSubscription
	all := map[string]*pushSubscription{}
	if err := json.Unmarshal(data, &one); err != nil {
		return nil, errors.New("the subscriptions are not JSON; give the result of PushSubscription.toJSON")
	}
	if one.Endpoint != "" {
		all[path.Base(one.Endpoint)] = &one
	} else if err := json.Unmarshal(data, &all); err != nil {
		return nil, errors.New("the subscriptions are not a JSON object of subscriptions by name")
	}
	named := make(map[string]*pushSubscription, len(all))
	for name, s := range all {
		if s == nil || s.parse() != nil {
			return nil, errors.New("a subscription has no https endpoint or no valid key; give the result of PushSubscription.toJSON")
		}
		named[strings.ToLower(name)] = s
	}
	if len(named) == 0 {
		return nil, errors.New("there is no subscription; put at least one into subfile")
	}
	return named, nil
}

// parse checks the endpoint and decodes the keys.
func (s *pushSubscription) parse() error {
	if u, err := url.Parse(s.Endpoint); err != nil || u.Scheme != "https" || u.Host == "" {
		return errors.New("no https endpoint")
	}
	point, err := decodeFileParam(s.Keys.P256DH)
	if err != nil {
		return err
	}
	if s.public, err = ecdh.P256().NewPublicKey(point); err != nil {
		return err
	}
	s.auth, err = decodeFileParam(s.Keys.Auth)
	return err
}

// origin returns the scheme, host and port of the push service.
func (s *pushSubscription) origin() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return "" // parse has checked it
	}
	return u.Scheme + "://" + u.Host
}

var (
	errNoVAPIDKey = errors.New("is not a private key on the curve P-256; create one with a tool for VAPID keys")
	oidEC         = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
)

// vapidKeyParam returns a private key that a URL has in place of a path.
func vapidKeyParam(s string) ([]byte, error) {
	data, err := decodeFileParam(s)
	if err == nil {
		_, err = vapidKey(data)
	}
	return data, err
}

// vapidKey reads a private key on the curve P-256, in PEM or as the 32 bytes that
// tools for web push print.
func vapidKey(file []byte) (*ecdsa.PrivateKey, error) {
	if len(file) == 32 {
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), file); err == nil {
			return key, nil
		}
	}
	if block, _ := pem.Decode(file); block != nil {
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		// Only keys on a curve are read: reading a large RSA key takes long.
		var outer pkcs8Key
		if _, err := asn1.Unmarshal(block.Bytes, &outer); err != nil || !outer.Algorithm.Algorithm.Equal(oidEC) {
			return nil, errNoVAPIDKey
		}
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	// Tools print the 32 bytes in base64, and that is what people put in a file.
	if text := strings.TrimSpace(string(file)); len(file) < 64 && len(file) != 32 && !strings.HasPrefix(text, "{") {
		if raw, err := decodeFileParam(text); err == nil && len(raw) == 32 {
			return vapidKey(raw)
		}
	}
	return nil, errNoVAPIDKey
}
