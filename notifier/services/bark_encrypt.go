package services

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// barkKey checks the length of an AES key.
func barkKey(s string) (string, error) {
	if _, err := aes.NewCipher([]byte(s)); err != nil {
		return "", errors.New("must have 16, 24 or 32 characters")
	}
	return s, nil
}

// encrypt encrypts payload for the app with AES in GCM mode. The initialisation
// vector consists of 12 ASCII characters, because the app reads it as text.
func (b *bark) encrypt(payload map[string]any) (map[string]any, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encoding the message: %w", err)
	}
	block, err := aes.NewCipher([]byte(b.key))
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	random := make([]byte, 9)
	rand.Read(random)
	iv := base64.RawURLEncoding.EncodeToString(random)
	return map[string]any{
		"iv": iv, "ciphertext": base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte(iv), text, nil)),
	}, nil
}
