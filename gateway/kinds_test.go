package gateway_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// kindTest is a gateway whose queue one key fills, with its destinations.
type kindTest struct {
	*gatewaytest.Gateway
	ok, refuses, fails *gatewaytest.Pager
	phones             *gatewaytest.PushService
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

// subscribe subscribes devices to the key k until that is refused or n times. It returns the
// refusal.
func (x *kindTest) subscribe(t *testing.T, n int, path func(i int) string) (last gatewaytest.Reply) {
	for i := range n {
		x.Rooms().Devices.Registrations = device.Limiter{}
		last = x.Ask(http.MethodPost, "/notify/k/devices", map[string]any{
			"name": fmt.Sprint(strings.Repeat("ü", 60), i), "subscription": x.phones.Subscription(path(i)), "invite": x.Invite("k"),
		})
		if last.Status >= http.StatusBadRequest {
			break
		}
	}
	return last
}

// alerts posts alerts with long labels as a ruler does, of groups of some size.
func (x *kindTest) alerts(group int) gatewaytest.Reply {
	return x.post("/prometheus/api/v2/alerts", 300, func(i int) string {
		return fmt.Sprintf(`[{"labels":{"alertname":"a%d","instance":"%d%s"},"startsAt":"2000-01-01T00:00:00Z","endsAt":"2099-01-01T00:00:00Z"}]`,
			i/group, i, strings.Repeat("x", 8<<10))
	})
}

// fillers add as many records of a kind as one key can. Those of a kind that refuses return the
// refusal.
var fillers = map[*outbox.Kind]func(t *testing.T, x *kindTest) gatewaytest.Reply{
	planned.Kind: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		return x.post("", 200, func(int) string { return `{"body":"` + strings.Repeat("x", 20<<10) + `","send_at":"30d"}` })
	},
	ask.Kind: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		return x.post("", 200, func(int) string {
			return `{"body":"` + strings.Repeat("x", 8<<10) + `","ask":{"text":true,"timeout":"7d"}}`
		})
	},
	device.KindInvitation: func(t *testing.T, x *kindTest) (r gatewaytest.Reply) {
		for range 2000 {
			_, _, err := x.Rooms().Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil)
			if e, ok := api.ErrorOf(err); ok {
				return gatewaytest.Reply{Status: e.Status, Body: e.Error(), Header: http.Header{"Retry-After": {e.RetryAfter.String()}}}
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return r
	},
	ruler.KindGroup: func(_ *testing.T, x *kindTest) gatewaytest.Reply { return x.alerts(1) },
	ruler.KindPiece: func(_ *testing.T, x *kindTest) gatewaytest.Reply { return x.alerts(100) },
	device.KindDevices: func(t *testing.T, x *kindTest) gatewaytest.Reply {
		return x.subscribe(t, 1000, func(i int) string { return fmt.Sprint("/", i, strings.Repeat("x", 1000)) })
	},
	// Each device has a state as soon as it gets a message. One that subscribes again is another
	// device.
	device.KindState: func(t *testing.T, x *kindTest) (last gatewaytest.Reply) {
		for range 120 {
			last = x.subscribe(t, 1, func(int) string { return "/again" })
			x.PostForm("/notify/k", "body=x&type=failure")
		}
		return last
	},
	device.KindReceipt: func(t *testing.T, x *kindTest) (last gatewaytest.Reply) {
		x.subscribe(t, 5, func(i int) string { return fmt.Sprint("/", i) })
		for i := range 60 {
			x.PostForm("/notify/k", fmt.Sprint("type=failure&body=x", i))
		}
		return last
	},
	alerting.KindIncident: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 300 {
			x.PostForm("/notify/k", gatewaytest.AlertForm("warning", "x", fmt.Sprintf("incident %04d", i)))
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		return gatewaytest.Reply{}
	},
	inbox.KindMessage: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 200 {
			x.PostForm("/notify/k", fmt.Sprintf("title=%d&body=%s", i, strings.Repeat("x", 10<<10)))
		}
		return gatewaytest.Reply{}
	},
	alerting.KindSilences: func(_ *testing.T, x *kindTest) (last gatewaytest.Reply) {
		text := strings.Repeat("x", 190)
		for i := range 2 * rules.MaxSilences {
			last = x.PostForm("/notify/k/silences", fmt.Sprintf("for=2h&title=%s%03d&reason=%s", text, i, text))
			if last.Status >= http.StatusBadRequest {
				break
			}
		}
		return last
	},
	heartbeat.KindBeat: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 100 {
			x.PostForm(fmt.Sprintf("/notify/k?beat=nightly&exit=%d", i%2), "body="+strings.Repeat("x", 20<<10))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindGivenUp: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 300 { // many texts to one destination, and many destinations
			x.PostForm("/notify/saved", fmt.Sprintf("body=%d&template[room]=%d", i, max(0, i-150)))
		}
		return gatewaytest.Reply{}
	},
	alerting.KindIncidentID: func(_ *testing.T, x *kindTest) gatewaytest.Reply { // of one incident
		for i := range 400 {
			x.PostForm("/notify/k", gatewaytest.AlertForm([]string{"failure", "success"}[i%2], "x", "again"))
		}
		return gatewaytest.Reply{}
	},
	alerting.KindLane: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
		for i := range 300 {
			x.PostForm("/notify/rated", fmt.Sprintf("body=x&template[room]=%d", i))
		}
		return gatewaytest.Reply{}
	},
	outbox.KindOpenAlert: func(t *testing.T, x *kindTest) (r gatewaytest.Reply) {
		open := func(i int) string {
			return x.Post("/notify/plain/opsgenie/v2/alerts", gatewaytest.TypeJSON, fmt.Sprintf(`{"alias":"a%d","message":"x"}`, i)).Body
		}
		for i := range 200 {
			open(i)
			if i%20 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(5 * time.Second) // until the oldest are forgotten
		if last, first := open(199), open(0); !strings.Contains(last, "Nothing was sent") || strings.Contains(first, "Nothing was sent") {
			t.Errorf("again, the latest alert: %s, and one that is forgotten: %s", last, first)
		}
		return r
	},
	outbox.KindCancelled: func(t *testing.T, x *kindTest) gatewaytest.Reply {
		for range 100 {
			id := x.PostForm("/notify/k", "body=x&send_at=1h").JSON(t).ID
			x.Message(http.MethodDelete, id, "application/json")
		}
		return gatewaytest.Reply{}
	},
}

// filledWith are the kinds that are filled with another one.
var filledWith = map[*outbox.Kind]*outbox.Kind{
	alerting.KindSubject: alerting.KindIncident,
	inbox.KindInbox:      inbox.KindMessage,
}

// TestKinds checks that one key cannot take the room of others with any kind of records: that
// what exceeds its limits is refused with an answer that says what to do, or forgotten, and that
// a failure of another key is kept.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range outbox.Kinds() {
		fill := fillers[kind]
		if fill == nil && kind.OfKeys() && fillers[filledWith[kind]] == nil {
			t.Errorf("no test fills the queue with %s", kind)
		}
		if fill == nil {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			x := &kindTest{
				ok: gatewaytest.NewPager(t, http.StatusOK), refuses: gatewaytest.NewPager(t, http.StatusBadRequest),
				fails:  gatewaytest.NewPager(t, http.StatusServiceUnavailable),
				phones: gatewaytest.NewPushService(t),
			}
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) { testKind(t, kind, x, dir, fill) })
		})
	}
}

// options returns the options of the gateway for the test of a kind.
func (x *kindTest) options(kind *outbox.Kind, dir string) gatewaytest.Options {
	k := gatewaytest.RuledKey("k", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, x.ok.NotifyURL())
	k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Hour}}}
	if kind == inbox.KindMessage {
		k.Inbox, k.Readers = 7*24*time.Hour, []string{"0123456789abcdef"}
	}
	o := gatewaytest.Options{
		Global: gatewaytest.PushOptions(k, gatewaytest.Key("plain", x.ok.NotifyURL()), gatewaytest.Key("other", x.fails.NotifyURL())),
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Saved:  &saved.Options{Manage: true, Trusted: true},
		Queue:  &outbox.Settings{Path: dir, MaxSize: 1 << 20},
	}
	o.Global.Push.Max = 500
	switch kind {
	case ruler.KindPiece: // they are of groups of more than 64 KiB
		o.Queue.MaxSize = 4 << 20
	case alerting.KindIncident, alerting.KindIncidentID, alerting.KindLane: // a share is reached with fewer messages
		o.Queue.MaxSize = 256 << 10
	}
	if kind == alerting.KindLane {
		o.Saved.Rules = &rules.Rules{Rate: []rules.Rate{{Count: 5, Per: 24 * time.Hour}}}
	}
	return o
}

func testKind(t *testing.T, kind *outbox.Kind, x *kindTest, dir string, fill func(*testing.T, *kindTest) gatewaytest.Reply) {
	x.Gateway = gatewaytest.New(t, x.options(kind, dir))
	for name, p := range map[string]*gatewaytest.Pager{"saved": x.refuses, "rated": x.ok} {
		yaml := "version: 2\ntemplate: [room]\nurls:\n- " + p.NotifyURL() + "${room}"
		if r := x.PostForm("/add/"+name, url.Values{"format": {"yaml"}, "config": {yaml}}.Encode()); r.Status != http.StatusOK {
			t.Fatal(r.Status, r.Body)
		}
	}
	refusal := fill(t, x)
	refuses := kind.Refuses() || kind == ruler.KindPiece
	if refuses && (refusal.Status != http.StatusTooManyRequests || refusal.Header.Get("Retry-After") == "" ||
		!strings.Contains(refusal.Body, "; ")) {
		t.Errorf("the refusal: status %d, Retry-After %q: %s", refusal.Status, refusal.Header.Get("Retry-After"), refusal.Body)
	}
	const alarm = "type=failure&body="
	if got := x.PostForm("/notify/other", alarm+strings.Repeat("y", 64<<10)); got.Status >= http.StatusBadRequest {
		t.Errorf("a failure of another key: status %d: %s", got.Status, got.Body)
	}
	if !refuses {
		time.Sleep(15 * time.Second) // until the oldest are forgotten
	}
	synctest.Wait()
	id := x.PostForm("/notify/other", alarm+strings.Repeat("z", 64<<10)).JSON(t).ID
	time.Sleep(15 * time.Second)
	if state, _ := x.State(id); state != string(message.StateQueued) {
		t.Errorf("a failure of another key is %s", state)
	}
	s, err := x.Rooms().Outbox.Queue.Stats(t.Context())
	if err != nil || s.Bytes > x.maxSize()/4*3 {
		t.Errorf("%d bytes are taken, %v", s.Bytes, err)
	}
	x.checkShares(t, kind)
}

// maxSize is that of the queue.
func (x *kindTest) maxSize() int64 { return x.Rooms().Outbox.Queue.MaxSize() }

// countsWith are the kinds whose records count for the share of another one.
var countsWith = map[*outbox.Kind]*outbox.Kind{
	ruler.KindPiece:         ruler.KindGroup,
	device.KindState:        device.KindDevices,
	alerting.KindIncidentID: alerting.KindIncident,
	alerting.KindSubject:    alerting.KindIncident,
	alerting.KindLane:       alerting.KindIncident,
	inbox.KindInbox:         inbox.KindMessage,
	outbox.KindCancelled:    planned.Kind,
}

// checkShares reports kinds that take more than the share of one key, and a test that has not
// filled the queue with a kind.
func (x *kindTest) checkShares(t *testing.T, filled *outbox.Kind) {
	t.Helper()
	names, err := x.Rooms().Outbox.Store.SurplusRecords(t.Context(), 0, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	has, of := map[*outbox.Kind]int64{}, map[*outbox.Kind]int64{}
	for _, name := range names {
		record, err := x.Rooms().Outbox.Queue.Records.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if kind := outbox.KindOf(record); kind != nil {
			n := outbox.Weigh(record).Bytes
			has[kind] += n
			of[cmp.Or(countsWith[kind], kind)] += n
		}
	}
	for kind, n := range of {
		if kind.Limits() && n > kind.KeyShare(x.maxSize()) {
			t.Errorf("%s take %d bytes of %d: %v", kind, n, kind.KeyShare(x.maxSize()), has)
		}
	}
	if has[filled] == 0 && filled != outbox.KindCancelled {
		t.Errorf("there are no %s", filled)
	}
}

// TestKindsOfRooms checks that each kind of records is in the list of one room.
func TestKindsOfRooms(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{Queue: &outbox.Settings{}})
	of := map[*outbox.Kind]int{}
	for _, room := range g.Rooms().All() {
		for _, kind := range room.Kinds() {
			of[kind]++
		}
	}
	for _, kind := range outbox.Kinds() {
		if of[kind] != 1 {
			t.Errorf("%d rooms have the %s", of[kind], kind)
		}
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
