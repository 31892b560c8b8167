package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// kindTest is a gateway whose queue one key fills, with its destinations.
type kindTest struct {
	*gatewaytest.Gateway
	ok, refuses, fails *gatewaytest.Pager
}

// post posts JSON to the key k until it is refused or n times. It returns the refusal.
func (x *kindTest) post(path string, n int, body func(i int) string) (last gatewaytest.Reply) {
	for i := range n {
		last = x.Post("/notify/k"+path, gatewaytest.TypeJSON, body(i))
		if last.Status >= http.StatusBadRequest {
			break
		}
	}
	return last
}

// fillers add as many records of a kind as one key can. Those of a kind that refuses return the
// refusal.
var fillers = map[*outbox.Kind]func(t *testing.T, x *kindTest) gatewaytest.Reply{
	outbox.KindPlanned: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		return x.post("", 200, func(int) string { return `{"body":"` + strings.Repeat("x", 20<<10) + `","send_at":"30d"}` })
	},
	outbox.KindQuestion: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		return x.post("", 200, func(int) string {
			return `{"body":"` + strings.Repeat("x", 8<<10) + `","ask":{"text":true,"timeout":"7d"}}`
		})
	},
	outbox.KindInvitation: func(t *testing.T, x *kindTest) (r gatewaytest.Reply) {
		for range 2000 {
			_, _, err := x.Rooms().Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil)
			if e, ok := errors.AsType[*api.Error](err); ok {
				return gatewaytest.Reply{Status: e.Status, Body: e.Error(), Header: http.Header{"Retry-After": {e.RetryAfter.String()}}}
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return r
	},
	outbox.KindIncident: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 800 {
			x.PostForm("/notify/k", gatewaytest.AlertForm("warning", "x", fmt.Sprintf("incident %04d", i)))
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		return gatewaytest.Reply{}
	},
	outbox.KindInboxMessage: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 200 {
			x.PostForm("/notify/k", fmt.Sprintf("title=%d&body=%s", i, strings.Repeat("x", 10<<10)))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindSilences: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		text := strings.Repeat("x", 190)
		for i := range 2 * rules.MaxSilences {
			x.PostForm("/notify/k/silences", fmt.Sprintf("for=2h&title=%s%03d&reason=%s", text, i, text))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindBeat: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 100 {
			x.PostForm(fmt.Sprintf("/notify/k?beat=nightly&exit=%d", i%2), "body="+strings.Repeat("x", 20<<10))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindGivenUp: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 300 {
			x.PostForm("/notify/refused", fmt.Sprintf("body=%d%s", i, strings.Repeat("x", 4<<10)))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindCancelled: func(t *testing.T, x *kindTest) gatewaytest.Reply {
		for range 100 {
			id := x.PostForm("/notify/k", "body=x&send_at=1h").JSON(t).ID
			x.Message(http.MethodDelete, id, "application/json")
		}
		return gatewaytest.Reply{}
	},
}

// elsewhere says what fills the queue with the other kinds.
var elsewhere = map[*outbox.Kind]string{
	outbox.KindIncidentID:  "here, with the incidents",
	outbox.KindSubject:     "here, with the incidents",
	outbox.KindLane:        "here, with the incidents",
	outbox.KindInbox:       "here, with its messages",
	outbox.KindAlertGroup:  "package ruler",
	outbox.KindAlertPiece:  "package ruler, with the groups",
	outbox.KindDevices:     "package device, whose devices are few and have addresses of bounded length",
	outbox.KindDeviceState: "package device: one for each device",
	outbox.KindReceipt:     "package device: one for each message that was pushed",
}

// TestKinds checks that one key cannot take the room of others with any kind of records: that
// what exceeds its limits is refused with an answer that says what to do, or forgotten, and that
// a failure of another key is kept.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range outbox.Kinds() {
		fill := fillers[kind]
		if fill == nil && kind.OfKeys() && elsewhere[kind] == "" {
			t.Errorf("no test fills the queue with %s", kind)
		}
		if fill == nil {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			x := &kindTest{ok: gatewaytest.NewPager(t, http.StatusOK), refuses: gatewaytest.NewPager(t, http.StatusBadRequest), fails: gatewaytest.NewPager(t, http.StatusServiceUnavailable)}
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) { testKind(t, kind, x, dir, fill) })
		})
	}
}

func testKind(t *testing.T, kind *outbox.Kind, x *kindTest, dir string, fill func(*testing.T, *kindTest) gatewaytest.Reply) {
	k := gatewaytest.RuledKey("k", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, x.ok.NotifyURL())
	k.Inbox, k.Readers = 7*24*time.Hour, []string{"0123456789abcdef"}
	k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Hour}}}
	if kind != outbox.KindInboxMessage {
		k.Inbox, k.Readers = 0, nil
	}
	x.Gateway = gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k, gatewaytest.Key("refused", x.refuses.NotifyURL()), gatewaytest.Key("other", x.fails.NotifyURL())}, PublicURL: gatewaytest.PublicURL},
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Queue:  &outbox.Settings{Path: dir, MaxSize: 1 << 20},
	})
	refusal := fill(t, x)
	if kind.Refuses() && (refusal.Status != http.StatusTooManyRequests || refusal.Header.Get("Retry-After") == "" || !strings.Contains(refusal.Body, "; ")) {
		t.Errorf("the refusal: status %d, Retry-After %q: %s", refusal.Status, refusal.Header.Get("Retry-After"), refusal.Body)
	}
	if !kind.Refuses() {
		time.Sleep(15 * time.Second) // until the oldest are forgotten
	}
	synctest.Wait()
	if got := x.PostForm("/notify/other", "type=failure&body="+strings.Repeat("y", 64<<10)); got.Status >= http.StatusBadRequest {
		t.Errorf("a failure of another key: status %d: %s", got.Status, got.Body)
	}
	s, err := x.Rooms().Outbox.Queue.Stats(t.Context())
	if err != nil || s.Bytes > 3<<18 {
		t.Errorf("%d bytes are taken, %v", s.Bytes, err)
	}
}

// TestKindsOfOneKey checks that all kinds together leave room.
func TestKindsOfOneKey(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	var of int64
	for _, kind := range outbox.Kinds() {
		if kind.Refuses() {
			of += kind.KeyShare(size)
		}
	}
	if of > size/3 {
		t.Errorf("one key may take %d of %d bytes with what is refused, beside what is forgotten", of, size)
	}
}
