package services

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

// encrypt makes a message that only the browser can read.
func (s *pushSubscription) encrypt(text []byte) ([]byte, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	return s.encryptWith(key, salt, text)
}

// webPushSize is how many bytes every push service takes (RFC 8030, section
// 7.2), and the size of a record, of which a message has one.
const webPushSize = 4096

// encryptWith encrypts under a key and a salt that must serve only once
// (RFC 8291, section 3.4; RFC 8188, section 2).
func (s *pushSubscription) encryptWith(key *ecdh.PrivateKey, salt, text []byte) ([]byte, error) {
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
	out := binary.BigEndian.AppendUint32(append([]byte{}, salt...), webPushSize)
	out = append(out, byte(len(sender)))
	out = append(out, sender...)
	const lastRecord = 2 // delimiter behind the text
	text = append(append([]byte{}, text...), lastRecord)
	if len(out)+len(text)+gcm.Overhead() > webPushSize {
		return nil, notifier.Refused(errors.New("the message is longer than a web push can be"))
	}
	return gcm.Seal(out, nonce, text, nil), nil
}
