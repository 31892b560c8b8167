package services

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// The app can decrypt messages with its key, and no two messages share an
// initialisation vector.
func TestBarkEncryption(t *testing.T) {
	const key = "1234567890abcdef"
	seen := map[string]bool{}
	app := servicetest.API(func(_ *http.Request, body string) (int, string) {
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
		if err := json.Unmarshal(text, &payload); err != nil || payload.Title != "Disk almost full" ||
			payload.Body != "Volume /data is at 91% on host-7" {
			t.Errorf("the app reads %s", text)
		}
		return 200, "{}"
	})
	send := app.Destination(t, "barks://bark.example.org/device-1?key="+key)
	for range 2 {
		if err := send(servicetest.Message(t, "plain")); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Error("two messages share an initialisation vector")
	}
}

// Long messages are split so that Apple's push service accepts them. It refuses
// payloads of more than 4096 bytes, for which the Bark server answers 500.
func TestBarkLong(t *testing.T) {
	for _, query := range []string{
		"", "?overflow=split", "?format=markdown", "?key=1234567890abcdef&overflow=split",
		"?group=disks&category=alerts&url=https://example.com/a/long/address&key=1234567890abcdef",
	} {
		taken := 0
		server := servicetest.API(func(_ *http.Request, body string) (int, string) {
			var params map[string]any
			if err := json.Unmarshal([]byte(body), &params); err != nil {
				t.Fatal(err)
			}
			params["aps"] = map[string]any{
				"alert":           map[string]any{"title": params["title"], "subtitle": "", "body": params["body"]},
				"mutable-content": 1, "sound": "1107.caf", "category": "myNotificationCategory", "thread-id": params["group"],
			}
			for _, name := range []string{"title", "body", "device_key"} {
				delete(params, name)
			}
			if payload, _ := json.Marshal(params); len(payload) > 4096 {
				return 500, `{"code": 500, "message": "push failed: PayloadTooLarge"}`
			}
			taken++
			return 200, "{}"
		})
		m := servicetest.Message(t, "long")
		m.Body = strings.ReplaceAll(m.Body, "line", "Zeile für \"Größe\"\n")
		if err := server.Destination(t, "barks://bark.example.org/device-1"+query)(m); err != nil || taken < 2 {
			t.Errorf("%s: %d parts, %v", query, taken, err)
		}
	}
}
