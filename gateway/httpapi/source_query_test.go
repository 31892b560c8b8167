package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestMessageInQuery checks that the query string has the message at the APIs whose servers read
// it there, with any Content-Type and an empty body: UniFi Protect sends so to Gotify.
func TestMessageInQuery(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	k := gatewaytest.Key("k", s.NotifyURL("/a"))
	k.Tokens = []string{"0123456789abcdefghij"}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{k}}})
	const token = "token=0123456789abcdefghij&"
	payload := url.QueryEscape(`{"text": "hello"}`)
	for _, tt := range []struct {
		target, contentType, body string
		want                      string // "" for a refusal
	}{
		{"gotify/message?" + token + "message=hello", "", "", "hello"},
		{"gotify/message?" + token + "message=hello", gatewaytest.TypeForm, "", "hello"},
		{"gotify/message?" + token + "message=hello", gatewaytest.TypeJSON, " \r\n", "hello"},
		{"gotify/message?" + token + "message=hello&title=Door&priority=8", "", "", "Door|hello|failure"},
		{"gotify/message?" + token + "message=K%FCche", "", "", "Küche"},
		{"gotify/message?" + token + "title=Door", gatewaytest.TypeForm, "message=hello", "Door|hello"},
		{"gotify/message?" + token + "message=query", gatewaytest.TypeJSON, `{"message":"body"}`, "body"},
		{"gotify/message?" + token, "", "", ""},
		{"gotify/message?message=hello", "", "", ""},
		{"ntfy/topic?" + token + "message=hello&title=Door", "", "", "Door|hello"},
		{"slack/api/chat.postMessage?" + token + "channel=c&text=hello", "", "", "hello"},
		{"slack?" + token + "payload=" + payload, gatewaytest.TypeForm, "", "hello"},
		{"grafana?" + token + "message=hello", "", "", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify/k/"+tt.target, strings.NewReader(tt.body))
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		got := g.Do(r)
		told := ""
		if all := s.Take(); len(all) > 0 {
			told = strings.Join([]string{all[0].Title, all[0].Message, all[0].Type}, "|")
		}
		if tt.want == "" && (told != "" || got.Status/100 == 2 && !strings.Contains(got.Body, `"ok":false`)) || !strings.Contains(told, tt.want) {
			t.Errorf("%s: status %d, told %q, want %q: %s", tt.target, got.Status, told, tt.want, got.Body)
		}
	}
}
