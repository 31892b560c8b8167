package services

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestSignedWebhooks checks what a receiver of signed webhooks relies on: the signature covers
// the body with its files, all attempts have the ID of the message, and the URL's own fields of
// the header remain, but do not replace the signature's fields.
func TestSignedWebhooks(t *testing.T) {
	const secret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2La+/Sw"
	key, err := standardwebhook.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	m := servicetest.Message(t, "attach")
	for _, scheme := range []string{"json", "form", "xml"} {
		t.Run(scheme, func(t *testing.T) {
			attempts := 0
			send := servicetest.API(func(q *http.Request, body string) (int, string) {
				id, h := q.Header["Webhook-Id"], q.Header
				if len(id) != 1 || id[0] != m.ID || h.Get("X-Key") != "abcd" {
					t.Errorf("header %v", h)
				}
				if !key.Verify(m.ID, h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), strings.NewReader(body)) {
					t.Errorf("the signature is wrong: %v", h)
				}
				if attempts++; attempts == 1 {
					return http.StatusServiceUnavailable, ""
				}
				return http.StatusOK, ""
			}).Destination(t, scheme+"://example.com/hook?sign=standard:whsec_"+secret+"&+webhook-id=mine&+X-Key=abcd&retry=1&wait=0")
			if err := send(m); err != nil || attempts != 2 {
				t.Errorf("%d attempts: %v", attempts, err)
			}
		})
	}
}

// TestSignedWebhookWithoutID checks that a message without an ID gets one for each attempt,
// and that each part of a divided message has another.
func TestSignedWebhookWithoutID(t *testing.T) {
	ids := map[string]bool{}
	send := servicetest.API(func(q *http.Request, _ string) (int, string) {
		ids[q.Header.Get("Webhook-Id")] = true
		return http.StatusOK, ""
	}).Destination(t, "json://example.com?sign=standard:MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw&overflow=split")
	m := &notifier.Message{Body: strings.Repeat("word ", 20000)}
	if err := send(m); err != nil || len(ids) < 2 || ids[""] {
		t.Errorf("the IDs are %v: %v", ids, err)
	}
	clear(ids)
	m.ID = "01a2c4e6"
	if err := send(m); err != nil || !ids["01a2c4e6"] || !ids["01a2c4e6-2"] {
		t.Errorf("the IDs of the parts are %v: %v", ids, err)
	}
}

// TestWebhooksAreRemembered checks that the URL of a webhook is parsed once for the messages of
// clients: the key of its signature is no state between messages.
func TestWebhooksAreRemembered(t *testing.T) {
	s := notifier.NewSender(egress.NewPool(""), 0)
	defer s.Close()
	for _, url := range []string{
		"json://127.0.0.1/x", "form://127.0.0.1/x", "xml://127.0.0.1/x",
		"json://127.0.0.1/x?sign=standard:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	} {
		a, err := s.ParseOnce(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.ParseOnce(url, nil); a != b {
			t.Errorf("%s is parsed again", url)
		}
	}
}
