package services

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// The app can decrypt messages with its password and salt.
func TestSimplePushEncryption(t *testing.T) {
	sum := sha1.Sum([]byte("pass-1salt-1"))
	block, _ := aes.NewCipher(sum[:16])
	decrypt := func(iv []byte, text string) string {
		data, err := base64.URLEncoding.DecodeString(text)
		if err != nil || len(data) == 0 || len(data)%aes.BlockSize != 0 {
			t.Fatalf("%q is not a ciphertext", text)
		}
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(data, data)
		pad := int(data[len(data)-1])
		if pad < 1 || pad > aes.BlockSize || !bytes.HasSuffix(data, bytes.Repeat([]byte{byte(pad)}, pad)) {
			t.Fatalf("padded with % x", data[len(data)-aes.BlockSize:])
		}
		return string(data[:len(data)-pad])
	}
	for _, name := range []string{"plain", "notitle"} {
		m := servicetest.Message(t, name)
		app := servicetest.API(func(_ *http.Request, body string) (int, string) {
			form, _ := url.ParseQuery(body)
			iv, err := hex.DecodeString(form.Get("iv"))
			if err != nil || len(iv) != aes.BlockSize || form.Get("encrypted") != "true" {
				t.Fatalf("not encrypted: %s", body)
			}
			if title, msg := decrypt(iv, form.Get("title")), decrypt(iv, form.Get("msg")); title != m.Title || msg != m.Body {
				t.Errorf("the app reads %q, %q", title, msg)
			}
			return 200, `{"status": "OK"}`
		})
		if err := app.Destination(t, "spush://salt-1:pass-1@device-key-1")(m); err != nil {
			t.Fatal(err)
		}
	}
}
