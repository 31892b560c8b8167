package services

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// wecomServer issues access tokens. Only the last one is valid.
type wecomServer struct {
	signIns, sent int
	broken        bool // refuses every token
}

func (w *wecomServer) RoundTrip(q *http.Request) (*http.Response, error) {
	query := q.URL.Query()
	var body string
	switch {
	case q.URL.Path == "/cgi-bin/gettoken" && query.Get("corpsecret") == "app-secret":
		w.signIns++
		body = fmt.Sprintf(`{"errcode":0,"access_token":"token-%d","expires_in":7200}`, w.signIns)
	case q.URL.Path == "/cgi-bin/gettoken":
		body = `{"errcode":40001,"errmsg":"invalid credential"}`
	case w.broken || query.Get("access_token") != fmt.Sprintf("token-%d", w.signIns):
		body = `{"errcode":42001,"errmsg":"access_token expired"}`
	default:
		w.sent++
		body = `{"errcode":0,"errmsg":"ok"}`
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: q}, nil
}

func TestWechatToken(t *testing.T) {
	server := &wecomServer{}
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", server), 0)
	d, err := sender.Parse("wechat://corp:app-secret@1000002/@all", nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		report := sender.Send(context.Background(), servicetest.Message(t, "plain"),
			[]notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
		return report.Results[0].Err
	}
	for range 2 {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	if server.signIns != 1 || server.sent != 2 {
		t.Fatalf("two messages took %d access tokens, want one", server.signIns)
	}

	server.signIns++ // a sign-in of another client invalidates the token
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if server.signIns != 3 || server.sent != 3 {
		t.Errorf("a message with an expired token: %d sign-ins, %d sent", server.signIns, server.sent)
	}

	server.broken = true
	if err := send(); err == nil || !strings.Contains(err.Error(), "42001") {
		t.Errorf("a token that is always refused: %v", err)
	}
	if server.signIns != 4 {
		t.Errorf("%d sign-ins, want one more and no endless loop", server.signIns)
	}
}
