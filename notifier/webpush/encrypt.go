package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// encrypt encrypts a text for the browser.
func (s *Subscription) encrypt(text []byte) ([]byte, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	return s.encryptWith(key, salt, text)
}

// recordSize is the maximum size in bytes of a message that every push service
// accepts (RFC 8030, section 7.2). A message is one record of this size.
const recordSize = 4096

// MaxPayload is the maximum size of a payload in bytes. Encryption takes the others of a
// record.
const MaxPayload = recordSize - 103

// encryptWith encrypts a text with a key and a salt that must not be used again
// (RFC 8291, section 3.4; RFC 8188, section 2).
func (s *Subscription) encryptWith(key *ecdh.PrivateKey, salt, text []byte) ([]byte, error) {
	shared, err := key.ECDH(s.public)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	sender := key.PublicKey().Bytes()
	info := "WebPush: info\x00" + string(s.public.Bytes()) + string(sender)
	secret, err := hkdf.Key(sha256.New, shared, s.auth, info, 32)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	contentKey, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	block, err := aes.NewCipher(contentKey)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	out := binary.BigEndian.AppendUint32(append([]byte{}, salt...), recordSize)
	out = append(out, byte(len(sender)))
	out = append(out, sender...)
	const lastRecord = 2 // delimiter after the text
	text = append(append([]byte{}, text...), lastRecord)
	if len(out)+len(text)+gcm.Overhead() > recordSize {
		return nil, notifier.Refused(errors.New("the message is too long for a web push"))
	}
	return gcm.Seal(out, nonce, text, nil), nil
}
