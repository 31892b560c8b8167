package outbox_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
)

// TestSignedRetries checks that the webhook-id of a signed webhook is the ID of the message in the
// first attempt and in the attempts of the queue, and that each has the time of its attempt.
func TestSignedRetries(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	key, err := standardwebhook.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var ids, times []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		if !key.Verify(id, at, r.Header.Get("Webhook-Signature"), bytes.NewReader(body)) {
			t.Errorf("the signature is wrong: %v", r.Header)
		}
		mu.Lock()
		defer mu.Unlock()
		ids, times = append(ids, id), append(times, at)
		if len(ids) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("ops", "json://"+strings.TrimPrefix(server.URL, "http://")+"/?sign=standard:"+secret))
		id := g.PostForm("/notify/ops", "body=b").JSON(t).ID
		time.Sleep(time.Hour)
		if state, r := g.State(id); state != "delivered" || r.Attempts != 3 {
			t.Errorf("%s after %d attempts", state, r.Attempts)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(ids) != 3 || ids[0] != id || ids[1] != id || ids[2] != id || times[0] == times[2] {
			t.Errorf("the attempts have the IDs %v at %v, and the message has %s", ids, times, id)
		}
	})
}
