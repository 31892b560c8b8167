package caddyhttp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestEveryMessageHasItsSender checks that messages have the settings of their
// site, whichever way they come in. Mails and events lacked the identity once.
func TestEveryMessageHasItsSender(t *testing.T) {
	senders := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Embeds []struct {
				Author struct{ Name string } `json:"author"`
			} `json:"embeds"`
		}
		if err := json.Unmarshal(body, &m); err != nil || len(m.Embeds) == 0 {
			t.Errorf("the destination got %q", body)
			return
		}
		senders <- m.Embeds[0].Author.Name
	}))
	defer s.Close()
	address := porttest.Address()
	// The service fluxer is like Discord at an address of one's own.
	url := "fluxer://" + strings.TrimPrefix(s.URL, "http://") + "/" +
		strings.Repeat("1", 18) + "/" + strings.Repeat("a", 68) + "?format=markdown"
	h := newGateway(t, open, "identity {\nname Sender\n}\nsmtp "+address+"\nqueue {\npath "+t.TempDir()+"\n}\nkey ops {\nurl "+url+"\n}")
	if err := h.app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.app.Stop(); err != nil {
			t.Error(err)
		}
		_ = h.app.Cleanup()
	})
	event := func() {
		m := &notifier.Message{Body: "x", Type: notifier.Info}
		if err := (&recipient.Recipient{Key: "ops"}).Post(&h.app.gateway, m, site.SourceEvent, true, nil); err != nil {
			t.Error(err)
		}
	}
	for name, send := range map[string]func(){
		"key": func() { post(t, h, "/notify/ops", typeForm, "body=x") },
		"URL": func() { post(t, h, "/notify", typeJSON, `{"body":"x","urls":"`+url+`"}`) },
		"queue": func() {
			r := httptest.NewRequest("POST", "/notify/ops", strings.NewReader("x"))
			r.Header.Set("Content-Type", "text/plain")
			r.Header.Set("Prefer", "respond-async")
			if got := do(t, h, r); got.status != 202 {
				t.Errorf("%d %s", got.status, got.body)
			}
		},
		"source": func() { post(t, h, "/notify/ops/healthchecks", typeJSON, `{"name":"backup","status":"down"}`) },
		"mail": func() {
			if err := smtp.SendMail(address, nil, "sender@x", []string{"ops@x"}, []byte("Subject: x\r\n\r\ny\r\n")); err != nil {
				t.Error(err)
			}
		},
		"event": event,
		"test": func() {
			k := h.api.Resolved.Keys["ops"]
			if _, err := h.api.Sender.SendTest(httptest.NewRecorder(),
				httptest.NewRequest("POST", "/cfg/ops?test", nil), k,
				&message.Selection{Targets: k.Targets[:1]}); err != nil {
				t.Error(err)
			}
		},
	} {
		send()
		select {
		case got := <-senders:
			if got != "Sender" {
				t.Errorf("%s: the sender is %q", name, got)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: nothing arrived", name)
		}
	}
}
