package services

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
)

// The app can read what was encrypted with its key, and each message has an
// initialisation vector of its own.
func TestBarkEncryption(t *testing.T) {
	const key = "1234567890abcdef"
	seen := map[string]bool{}
	app := pushService(func(_ *http.Request, body string) (int, string) {
		var request struct{ DeviceKey, IV, Ciphertext, Body, Title string }
		if err := json.Unmarshal([]byte(body), &request); err != nil || request.Body+request.Title != "" {
			t.Errorf("unencrypted: %s", body)
		}
		block, _ := aes.NewCipher([]byte(key))
		gcm, _ := cipher.NewGCM(block)
		data, err := base64.StdEncoding.DecodeString(request.Ciphertext)
		if err != nil || len(request.IV) != gcm.NonceSize() {
			t.Fatalf("no ciphertext with IV: %s", body)
		}
		seen[request.IV] = true
		text, err := gcm.Open(nil, []byte(request.IV), data, nil)
		if err != nil {
			t.Fatal(err)
		}
		var payload struct{ Title, Body string }
		if err := json.Unmarshal(text, &payload); err != nil || payload.Title != "Disk almost full" || payload.Body != "Volume /data is at 91% on host-7" {
			t.Errorf("the app reads %s", text)
		}
		return 200, "{}"
	})
	send := app.destination(t, "barks://bark.example.org/device-1?key="+key)
	for range 2 {
		if err := send(message(t, "plain")); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Error("two messages share an initialisation vector")
	}
}
