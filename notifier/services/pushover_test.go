package services

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"testing"
)

// What is sealed opens with the key, is authentic, and never looks the same
// twice.
func TestPushoverSeal(t *testing.T) {
	key := strings.Repeat("0f", 32)
	raw, _ := hex.DecodeString(key)
	for _, text := range []string{"", "x", "Volume /data is at 91% on host-7", strings.Repeat("漢字 ☃ ", 500)} {
		sealed, err := pushoverSeal(key, text)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := pushoverSeal(key, text); again == sealed {
			t.Error("the same text is sealed in the same way twice")
		}
		b, err := base64.StdEncoding.DecodeString(sealed)
		if err != nil || len(b) < aes.BlockSize+sha256.Size {
			t.Fatalf("sealed %q is %d bytes: %v", text, len(b), err)
		}
		b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
		mac := hmac.New(sha256.New, raw)
		mac.Write(b)
		if !hmac.Equal(sum, mac.Sum(nil)) {
			t.Errorf("%q: the sum is wrong", text)
		}
		block, _ := aes.NewCipher(raw)
		iv, plain := b[:aes.BlockSize], b[aes.BlockSize:]
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, plain)
		plain = plain[:len(plain)-int(plain[len(plain)-1])]
		z, err := gzip.NewReader(bytes.NewReader(plain))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil || string(got) != text {
			t.Errorf("got %q, want %q: %v", got, text, err)
		}
	}
	if _, err := pushoverSeal("no key", "x"); err == nil {
		t.Error("a key that is none was taken")
	}
}
