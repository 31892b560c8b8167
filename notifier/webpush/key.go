package webpush

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Key is a private key by which push services recognize the sender: a VAPID key.
type Key struct {
	private *ecdsa.PrivateKey
	public  string
}

// Errors of keys.
var (
	errNoKey = errors.New("is not a private key on the curve P-256; create one with a tool for VAPID keys")
	oidEC    = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
)

// NewKey returns a new key, and the number that [ParseKey] reads it from.
func NewKey() (*Key, []byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a VAPID key: %w", err)
	}
	number, err := private.Bytes()
	if err != nil {
		return nil, nil, fmt.Errorf("making a VAPID key: %w", err)
	}
	k, err := newKey(private)
	return k, number, err
}

// ParseKey reads a private key on the curve P-256, in PEM or as the 32 bytes that tools
// for Web Push print, also in base64.
func ParseKey(file []byte) (*Key, error) {
	private, err := parsePrivate(file)
	if err != nil {
		return nil, err
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	point, err := private.PublicKey.ECDH()
	if err != nil {
		return nil, errNoKey
	}
	return &Key{private, base64.RawURLEncoding.EncodeToString(point.Bytes())}, nil
}

// Public returns the public key as a page gives it to PushManager.subscribe, which
// decodes it from base64url: an uncompressed point.
func (k *Key) Public() string { return k.public }

// pkcs8Key is the beginning of a private key in PKCS 8.
type pkcs8Key struct {
	Version   int
	Algorithm struct {
		Algorithm  asn1.ObjectIdentifier
		Parameters asn1.RawValue `asn1:"optional"`
	}
	PrivateKey []byte
}

func parsePrivate(file []byte) (*ecdsa.PrivateKey, error) {
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
			return nil, errNoKey
		}
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	// Tools print the 32 bytes in base64, and that is what people put in a file.
	if text := strings.TrimSpace(string(file)); len(file) < 64 && len(file) != 32 && !strings.HasPrefix(text, "{") {
		if raw, err := decode(text); err == nil && len(raw) == 32 {
			return parsePrivate(raw)
		}
	}
	return nil, errNoKey
}

// authorization returns the header that shows a push service who sends (RFC 8292):
// contact is the address of the operator, with its scheme.
func (k *Key) authorization(origin, contact string) (string, error) {
	token, err := k.sign(map[string]any{"aud": origin, "exp": time.Now().Add(12 * time.Hour).Unix(), "sub": contact})
	return "vapid t=" + token + ", k=" + k.public, err
}

// sign returns a JSON Web Token, signed with ES256 (RFC 7515).
func (k *Key) sign(claims map[string]any) (string, error) {
	data, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("writing a token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode(data)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)), nil
}
