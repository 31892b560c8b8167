package safety

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMatrixUnencrypted checks that a text for an encrypted Matrix room is not
// sent if it cannot be encrypted, also over plain HTTP. It cannot be encrypted
// here because the homeserver does not return the ID of the device. With e2ee=no
// the text is sent unencrypted.
func TestMatrixUnencrypted(t *testing.T) {
	t.Parallel()
	const text = "confidential text"
	var clear atomic.Int64
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), text) {
			clear.Add(1)
		}
		answer := "{}"
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/login"):
			answer = `{"access_token": "token", "user_id": "@a:h"}`
		case strings.HasSuffix(path, "/whoami"):
			answer = `{"user_id": "@a:h"}`
		case strings.Contains(path, "/join/"):
			answer = `{"room_id": "!r:h"}`
		case strings.HasSuffix(path, "/state/m.room.encryption"):
			answer = `{"algorithm": "m.megolm.v1.aes-sha2"}`
		}
		_, _ = io.WriteString(w, answer)
	})
	g := start(t, "", "egress {\nallow 127.0.0.1\n}")
	for _, url := range []string{"matrix://user:password@" + authority(s) + "/!r", "matrix://token@" + authority(s) + "/!r"} {
		r := g.post("/notify", message{"body": text, "urls": url})
		if n := clear.Swap(0); n > 0 || r.Status != http.StatusFailedDependency || !strings.Contains(r.text(), "add e2ee=no") {
			t.Errorf("%d requests with the text: %d %s", n, r.Status, r.text())
		}
		r = g.post("/notify", message{"body": text, "urls": url + "?e2ee=no"})
		if n := clear.Swap(0); n != 1 || r.Status != http.StatusOK {
			t.Errorf("with e2ee=no: %d requests with the text: %d %s", n, r.Status, r.text())
		}
	}
}
