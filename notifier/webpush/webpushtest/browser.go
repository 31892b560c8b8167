// Package webpushtest has a browser for tests of Web Push: a subscription, and the keys to decrypt
// its pushes.
package webpushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// Browser is a browser that has subscribed.
type Browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// NewBrowser returns a browser with new keys.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{key: key, auth: []byte("sixteen bytes ..")}
}

// Subscription returns a subscription at an address, as PushSubscription.toJSON does.
func (b *Browser) Subscription(endpoint string) map[string]any {
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{"endpoint": endpoint, "expirationTime": nil, "keys": map[string]string{
		"p256dh": encode(b.key.PublicKey().Bytes()), "auth": encode(b.auth),
	}}
}

// Read decrypts a push as a browser does (RFC 8188 and RFC 8291).
func (b *Browser) Read(t testing.TB, push string) string {
	t.Helper()
	if len(push) < 86 {
		t.Fatalf("%d bytes are not a push", len(push))
	}
	salt, point, sealed := []byte(push[:16]), []byte(push[21:86]), []byte(push[86:])
	sender, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		k, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	secret := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(point), 32)
	block, _ := aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16))
	gcm, _ := cipher.NewGCM(block)
	text, err := gcm.Open(nil, derive(secret, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\x02")
}
