package ask_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// TestAskDevice checks that a device has a button for each of two answers, and none for more,
// and that who answers by its link is the device.
func TestAskDevice(t *testing.T) {
	t.Parallel()
	dir, push := t.TempDir(), gatewaytest.NewPushService(t)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{Global: gatewaytest.PushOptions(gatewaytest.Key("k")), Queue: &outbox.Settings{Path: dir}})
		push.Subscribe(t, g, "ann")
		settle(time.Minute)
		before := len(push.Got())
		id := ask(t, g, strings.Replace(deploy, "{", `{"tell":true,`, 1))
		settle(time.Second)
		ask(t, g, `{"options":["a","b","c"]}`)
		settle(time.Second)
		got := push.Got()[before:]
		if len(got) != 2 {
			t.Fatalf("%d pushes", len(got))
		}
		p := got[0].Payload
		if p.Acknowledge || len(p.Actions) != 2 || p.Actions[0].Title != "deploy" || p.Actions[1].Link != p.Link+"?answer=wait" {
			t.Errorf("the payload is %+v", p)
		}
		if other := got[1].Payload; len(other.Actions) != 0 || other.Link == "" {
			t.Errorf("the payload with three answers is %+v", other)
		}
		link := strings.TrimPrefix(p.Link, "https://alerts.example.com")
		if shown := page(g, link); !strings.Contains(shown, "You answer as ann (device).") || strings.Contains(shown, `name="by"`) {
			t.Errorf("the page: %s", shown)
		}
		wantAnswered(t, g, link, "answer=deploy&by=Eve", http.StatusOK, "answered deploy by ann (device)")
		settle(time.Second)
		if told := push.Got(); !strings.Contains(told[len(told)-1].Payload.Text, "deploy, by ann (device), after") {
			t.Errorf("told %+v", told[len(told)-1].Payload)
		}
		if s := state(t, g, id, ""); s.Through != "device://ann" {
			t.Errorf("%+v", s)
		}
	})
}
