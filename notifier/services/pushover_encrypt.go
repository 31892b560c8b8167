package services

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// pushoverEncrypt encrypts a text end to end. It compresses the text with gzip,
// pads it (PKCS #7), encrypts it with AES-256-CBC under a random IV, and appends
// an HMAC-SHA256 of IV and ciphertext. It returns IV, ciphertext and HMAC in
// base64.
// See https://pushover.net/api#e2ee.
func pushoverEncrypt(hexKey, text string) (string, error) {
	key, err := hex.DecodeString(hexKey)
	if err != nil {
		return "", fmt.Errorf("reading the encryption key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", fmt.Errorf("reading the encryption key: %w", err)
	}
	out := bytes.NewBuffer(make([]byte, 0, 512))
	iv := make([]byte, aes.BlockSize)
	rand.Read(iv)
	out.Write(iv)
	z := gzip.NewWriter(out)
	_, _ = z.Write([]byte(text)) // writing to memory does not fail
	z.Close()
	pad := aes.BlockSize - out.Len()%aes.BlockSize
	out.Write(bytes.Repeat([]byte{byte(pad)}, pad))
	sealed := out.Bytes()
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(sealed[aes.BlockSize:], sealed[aes.BlockSize:])
	mac := hmac.New(sha256.New, key)
	mac.Write(sealed)
	return base64.StdEncoding.EncodeToString(mac.Sum(sealed)), nil
}
