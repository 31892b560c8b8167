package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tallystore"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// kindCase is what the suite knows of a kind of records.
type kindCase struct {
	// fill adds as many records as one key can. For a kind that refuses, it returns the refusal.
	fill   func(t *testing.T, x *kindTest) gatewaytest.Reply
	with   *outbox.Kind // the kind whose fill adds records of this one, too
	counts *outbox.Kind // the kind for whose share the records count, if that is another one

	make    func(x *live, key string)        // adds a record
	sees    func(x *live, key string) string // what somebody sees of the key; "" for nothing, nil if only the records show it
	key     string                           // a key of the configuration that alone can have them; default: a saved key
	refuses bool                             // the destination of the key refuses messages
	forgets bool                             // nothing is left of a key that was removed
	brief   bool                             // a record is there only during an attempt, while it is filled
	ends    time.Duration                    // when the record is due, and nobody sees it any more; 0 for never
	then    string                           // what somebody sees after that
	told    string                           // what the destination is told then
}

// kindCases are the cases of all kinds.
var kindCases = map[*outbox.Kind]kindCase{
	planned.Kind: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			return x.post("", 200, func(int) string { return `{"body":"` + strings.Repeat("x", 20<<10) + `","send_at":"30d"}` })
		},
		make: func(x *live, key string) { x.post(key, "body=x&send_at=1h") },
		sees: func(x *live, key string) string {
			all, err := x.Rooms().Planned.List(x.t.Context(), func(m *planned.Message) bool { return m.Place == x.place(key) })
			return x.some(len(all), err)
		},
		ends: time.Hour, told: "info: x",
	},
	ask.Kind: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			return x.post("", 200, func(int) string {
				return `{"body":"` + strings.Repeat("x", 8<<10) + `","ask":{"text":true,"timeout":"7d"}}`
			})
		},
		make: func(x *live, key string) {
			got := x.Post("/notify/"+key, gatewaytest.TypeJSON, `{"body":"x","ask":{"options":["a","b"],"timeout":"1h","default":"b"}}`)
			*x.made = got.JSON(x.t).ID
		},
		sees: func(x *live, key string) string {
			q, err := x.Rooms().Questions.Get(x.t.Context(), uuid.MustParse(*x.made))
			if err != nil || q.Place != x.place(key) {
				return ""
			}
			return string(q.Outcome.State)
		},
		ends: time.Hour, then: string(ask.Expired),
	},
	device.KindInvitation: {
		fill: func(t *testing.T, x *kindTest) (r gatewaytest.Reply) {
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
		make: func(x *live, key string) { *x.made = x.invite(key) },
		sees: func(x *live, key string) string {
			i, err := x.Rooms().Devices.Invitations.Find(x.t.Context(), x.place(key), *x.made)
			if err != nil || i == nil {
				return ""
			}
			return "invited"
		},
		ends: 24 * time.Hour,
	},
	ruler.KindGroup: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply { return x.alerts(1) },
		make: func(x *live, key string) { x.alert(key, 0) },
		sees: alertsOf, ends: time.Hour,
	},
	ruler.KindPiece: {
		counts: ruler.KindGroup,
		fill:   func(_ *testing.T, x *kindTest) gatewaytest.Reply { return x.alerts(100) },
		make: func(x *live, key string) {
			for range 10 {
				x.alert(key, 9<<10)
			}
		},
		sees: alertsOf, ends: time.Hour,
	},
	device.KindDevices: {
		fill: func(t *testing.T, x *kindTest) gatewaytest.Reply {
			return x.subscribe(t, 1000, func(i int) string { return fmt.Sprint("/", i, strings.Repeat("x", 1000)) })
		},
		make: subscribed, sees: devicesOf, forgets: true,
	},
	// Each device has a state as soon as it gets a message. One that subscribes again is another
	// device.
	device.KindState: {
		counts: device.KindDevices,
		fill: func(t *testing.T, x *kindTest) (last gatewaytest.Reply) {
			for range 120 {
				last = x.subscribe(t, 1, func(int) string { return "/again" })
				x.PostForm("/notify/k", "body=x&type=failure")
			}
			return last
		},
		make: pushed, sees: devicesOf,
	},
	device.KindReceipt: {
		fill: func(t *testing.T, x *kindTest) (last gatewaytest.Reply) {
			x.subscribe(t, 5, func(i int) string { return fmt.Sprint("/", i) })
			for i := range 60 {
				x.PostForm("/notify/k", fmt.Sprint("type=failure&body=x", i))
			}
			return last
		},
		make: pushed, ends: 31 * 24 * time.Hour,
	},
	alerting.KindIncident: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			for i := range 300 {
				x.PostForm("/notify/k", gatewaytest.AlertForm("warning", "x", fmt.Sprintf("incident %04d", i)))
				if i%10 == 0 {
					time.Sleep(time.Second)
				}
			}
			return gatewaytest.Reply{}
		},
		make: incident, sees: incidentsOf,
	},
	inbox.KindMessage: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			for i := range 200 {
				x.PostForm("/notify/k", fmt.Sprintf("title=%d&body=%s", i, strings.Repeat("x", 10<<10)))
			}
			return gatewaytest.Reply{}
		},
		make: text, sees: messagesOf, forgets: true, ends: time.Hour,
	},
	alerting.KindSilences: {
		fill: func(_ *testing.T, x *kindTest) (last gatewaytest.Reply) {
			text := strings.Repeat("x", 190)
			for i := range 2 * rules.MaxSilences {
				last = x.PostForm("/notify/k/silences", fmt.Sprintf("for=2h&title=%s%03d&reason=%s", text, i, text))
				if last.Status >= http.StatusBadRequest {
					break
				}
			}
			return last
		},
		make: func(x *live, key string) { x.AddSilence(key, "for=1h&title=x") },
		sees: func(x *live, key string) string {
			n := len(x.ListSilences(key))
			if place := x.place(key); x.Rooms().Alerts.Silences.Has(place.String()) != (n > 0) {
				return "not what messages find"
			}
			return x.some(n, nil)
		},
		ends: time.Hour,
	},
	heartbeat.KindBeat: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			for i := range 100 {
				x.PostForm(fmt.Sprintf("/notify/k?beat=nightly&exit=%d", i%2), "body="+strings.Repeat("x", 20<<10))
			}
			return gatewaytest.Reply{}
		},
		key:  "k",
		make: func(x *live, key string) { x.post(key+"?beat=nightly", "") },
		sees: func(x *live, _ string) string {
			all, err := x.Rooms().Beats.AllBeats(x.t.Context())
			if err != nil || len(all) == 0 || all[0].Beat.Last.IsZero() {
				return ""
			}
			return all[0].Beat.Last.String()
		},
	},
	outbox.KindGivenUp: {
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			for i := range 300 { // many texts to one destination, and many destinations
				x.PostForm("/notify/saved", fmt.Sprintf("body=%d&template[room]=%d", i, max(0, i-150)))
			}
			return gatewaytest.Reply{}
		},
		refuses: true, make: text, ends: 31 * 24 * time.Hour,
	},
	alerting.KindIncidentID: {
		counts: alerting.KindIncident,
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply { // of one incident
			for i := range 400 {
				x.PostForm("/notify/k", gatewaytest.AlertForm([]string{"failure", "success"}[i%2], "x", "again"))
			}
			return gatewaytest.Reply{}
		},
		make: incident, sees: incidentsOf,
	},
	alerting.KindLane: {
		counts: alerting.KindIncident,
		fill: func(_ *testing.T, x *kindTest) gatewaytest.Reply {
			for i := range 300 {
				x.PostForm("/notify/rated", fmt.Sprintf("body=x&template[room]=%d", i))
			}
			return gatewaytest.Reply{}
		},
		make: func(x *live, key string) {
			for range 6 {
				text(x, key)
			}
		},
		ends: 24 * time.Hour, told: "info: x",
	},
	outbox.KindOpenAlert: {
		fill: func(t *testing.T, x *kindTest) (r gatewaytest.Reply) {
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
		make: func(x *live, key string) {
			x.Post("/notify/"+key+"/opsgenie/v2/alerts", gatewaytest.TypeJSON, `{"alias":"a","message":"x"}`)
		},
		ends: 31 * 24 * time.Hour,
	},
	outbox.KindCancelled: {
		counts: planned.Kind,
		fill: func(t *testing.T, x *kindTest) gatewaytest.Reply {
			for range 100 {
				id := x.PostForm("/notify/k", "body=x&send_at=1h").JSON(t).ID
				x.Message(http.MethodDelete, id, "application/json")
			}
			return gatewaytest.Reply{}
		},
		brief: true,
	},

	// Those that are there with another one, which fills the queue.
	alerting.KindSubject: {with: alerting.KindIncident, counts: alerting.KindIncident, make: incident, sees: incidentsOf},
	inbox.KindInbox:      {with: inbox.KindMessage, counts: inbox.KindMessage, make: text, sees: messagesOf, ends: 3 * time.Hour},

	// Those that are not of keys.
	outbox.KindUsage:             {make: subscribed},
	alerting.KindSilencesVersion: {make: func(x *live, key string) { x.AddSilence(key, "for=1h&title=x") }},
	device.KindDevicesVersion:    {make: subscribed},
	device.KindPushKey:           {make: subscribed},
	heartbeat.KindUptime:         {key: "k", make: func(x *live, key string) { x.post(key+"?beat=nightly", "") }},
	heartbeat.KindWatchdog:       {make: text},
	tallystore.Kind:              {make: text},
}

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

// live is a gateway with a key that has records of a kind.
type live struct {
	*gatewaytest.Gateway
	t      *testing.T
	store  *bolt.Store // shared with another gateway; nil if it is not
	phones *gatewaytest.PushService
	made   *string // what identifies the record to clients
}

// place returns the place of a key.
func (x *live) place(key string) site.Place {
	x.t.Helper()
	k, err := x.Resolved.Key(x.t.Context(), key)
	if err != nil {
		x.t.Fatal(key, err)
	}
	return k.Place(x.Site())
}

// post posts a form to a key.
func (x *live) post(key, form string) gatewaytest.Reply {
	x.t.Helper()
	return x.PostForm("/notify/"+key, form)
}

// some says that there are n of what was looked for; "" for none.
func (x *live) some(n int, err error) string {
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// invite makes an invitation to a key.
func (x *live) invite(key string) string {
	token, _, err := x.Rooms().Devices.Invitations.Make(x.t.Context(), x.place(key), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	return token
}

// alert posts an alert as a ruler does, with a label of a size. It ends in half an hour.
func (x *live) alert(key string, size int) {
	x.t.Helper()
	*x.made += "i"
	got := x.Post("/notify/"+key+"/prometheus/api/v2/alerts", gatewaytest.TypeJSON, fmt.Sprintf(
		`[{"labels":{"alertname":"a","instance":"%s","x":"%s"},"startsAt":"2000-01-01T00:00:00Z","endsAt":"%s"}]`,
		*x.made, strings.Repeat("x", size), time.Now().Add(30*time.Minute).Format(time.RFC3339)))
	if got.Status != http.StatusOK {
		x.t.Fatal(got.Status, got.Body)
	}
}

func text(x *live, key string) { x.post(key, "body=x") }

func incident(x *live, key string) { x.post(key, gatewaytest.AlertForm("failure", "x", "disk")) }

func subscribed(x *live, key string) {
	x.t.Helper()
	if got := x.Ask(http.MethodPost, "/notify/"+key+"/devices", map[string]any{
		"name": "phone", "subscription": x.phones.Subscription("/" + key), "invite": x.invite(key),
	}); got.Status != http.StatusCreated {
		x.t.Fatal(got.Status, got.Body)
	}
}

func pushed(x *live, key string) {
	subscribed(x, key)
	x.post(key, "body=x&type=failure")
}

func alertsOf(x *live, key string) string {
	open, err := x.Rooms().Rulers.Open(x.t.Context(), x.place(key))
	return x.some(len(open), err)
}

func devicesOf(x *live, key string) string {
	list, err := x.Rooms().Devices.List(x.t.Context(), x.place(key))
	if known := x.Rooms().Devices.Known(x.place(key)); (known != nil) != (len(list) > 0) {
		return "not what messages find"
	}
	if len(list) == 0 {
		return ""
	}
	return x.some(len(list), err) + list[0].Sent.String()
}

func incidentsOf(x *live, key string) string {
	list, _, err := x.Rooms().Alerts.Incidents.List(x.t.Context(), []string{x.place(key).String()},
		&alerting.IncidentQuery{Stage: rules.Stages[0], Limit: 10})
	return x.some(len(list), err)
}

func messagesOf(x *live, key string) string {
	list, err := x.Rooms().Inboxes.Read(x.t.Context(), x.place(key).String(), 0)
	return x.some(len(list), err)
}
