package gatewaytest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Night is a gateway in the worst night of those on call. It has these keys:
//
//   - many: 200 incidents are open, which nobody is told of later.
//   - duty: "The shop is down" and "Payments fail" are open and escalate from Ann to Bob to the boss.
//   - lab: "The lab is hot" escalates, and a silence for the whole incident keeps its steps back.
//   - attic: "The attic is wet" is a warning, and a silence matches its title.
//   - everyone: 20 destinations, of which 2 are down, 1 refuses its token, and 17 are fine.
//   - approvals: "Deploy 1.4?" and "Open the gate?" wait for an answer. Without one, "no" is taken for the first, and
//     nothing is decided about the second. Ann has answered "Restart db1?", and nobody answered "Reboot web-1?" in time.
//   - backups: the beat nightly is fine, hourly is late (in a bubble), offsite has failed, mirror is late, archive runs, and no run
//     of yearly has come. Runs of the last weeks are remembered: on time, late, failed, missed and too long.
//   - family: two messages are planned, in 2 and in 8 hours.
//   - host-01 and so on: keys with one destination each. The first ten have got a message. All are [NightKeys].
//
// All but duty keep titles in an inbox.
type Night struct {
	*Gateway

	Fine, Down, Refusing *Pager // servers of the destinations
}

// What a [Night] has.
const (
	NightKeys         = 60
	NightIncidents    = 200 // of the key many
	NightDestinations = 20  // of the key everyone
)

// NewNight starts the destinations of a night. They end with the test.
func NewNight(t testing.TB) *Night {
	return &Night{
		Fine: NewPager(t, http.StatusOK), Down: NewPager(t, http.StatusServiceUnavailable),
		Refusing: NewPager(t, http.StatusUnauthorized),
	}
}

// InNight runs f in a bubble beside other tests, at 02:35 of a night.
func InNight(t *testing.T, f func(t *testing.T, n *Night)) {
	t.Helper()
	t.Parallel()
	n, dir := NewNight(t), t.TempDir()
	InBubble(t, func(t *testing.T) {
		n.Begin(t, dir, func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		})
		f(t, n)
	})
}

// Begin starts the gateway with a queue in a folder, and lets the night happen. pass lets time pass; without a bubble,
// a function that does not wait makes all of it happen now.
func (n *Night) Begin(t testing.TB, dir string, pass func(time.Duration)) {
	t.Helper()
	n.Gateway = New(t, Options{
		Global: site.Options{Keys: n.keys(), PublicURL: PublicURL},
		Site:   site.Options{Managers: Everybody(), Egress: Loopback()},
		Queue:  &outbox.Settings{Path: dir},
		Saved:  &saved.Options{Manage: true},
	})
	n.evening(t)
	pass(2 * time.Hour)
	n.plan(t)
	n.fail(t, pass)
	pass(time.Minute)
	for i := range NightIncidents {
		n.send(t, "many", "title", fmt.Sprintf("Disk full on web-%03d", i+1), "type", "failure", "incident", fmt.Sprintf("web-%03d", i+1))
		pass(6 * time.Second)
	}
	n.send(t, "duty", "title", "The shop is down", "type", "failure", "incident", "shop")
	pass(6 * time.Minute)
	n.send(t, "duty", "title", "Payments fail", "type", "failure", "incident", "payments")
	pass(2 * time.Minute)
}

// keys returns the keys of the night.
func (n *Night) keys() (all []site.KeyOptions) {
	once := rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
	steps := rules.Rules{Escalate: &rules.Escalate{
		After: []time.Duration{5 * time.Minute, 14 * time.Minute}, Repeat: 3, Ack: 4 * time.Hour,
	}}
	team := []string{
		ntfy(n.Fine, "chat") + " chat", ntfy(n.Fine, "ann") + " 1:oncall", ntfy(n.Fine, "bob") + " 2:oncall", ntfy(n.Fine, "boss") + " 3:oncall",
	}
	var everyone []string
	for i := range NightDestinations {
		p, name := n.Fine, fmt.Sprintf("phone-%02d", i+1)
		switch i + 1 {
		case 7, 13:
			p = n.Down
		case 17:
			p = n.Refusing
		}
		everyone = append(everyone, ntfy(p, name)+" "+map[bool]string{true: "eu", false: "us"}[i%2 == 0])
	}
	backups := Key("backups", ntfy(n.Fine, "backups"))
	backups.Expects = []site.BeatOptions{
		{Expect: rules.Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour}},
		{Expect: rules.Expect{Name: "hourly", Every: time.Hour, Grace: 10 * time.Minute}},
		{Expect: rules.Expect{Name: "offsite", Every: 24 * time.Hour, Grace: time.Hour}},
		{Expect: rules.Expect{Name: "mirror", Every: 24 * time.Hour, Grace: time.Hour, MaxRun: 2 * time.Hour}},
		{Expect: rules.Expect{Name: "archive", Every: 7 * 24 * time.Hour, Grace: 24 * time.Hour}},
		{Expect: rules.Expect{Name: "yearly", Every: 365 * 24 * time.Hour, Grace: 24 * time.Hour}},
	}
	all = []site.KeyOptions{
		RuledKey("many", once, ntfy(n.Fine, "many")), RuledKey("duty", steps, team...), RuledKey("lab", steps, team...),
		RuledKey("attic", once, ntfy(n.Fine, "attic")), Key("everyone", everyone...),
		Key("approvals", ntfy(n.Fine, "ann")+" 1:oncall", ntfy(n.Fine, "bob")+" 2:oncall"), backups, Key("family", ntfy(n.Fine, "family")),
	}
	for i := range NightKeys - len(all) {
		name := fmt.Sprintf("host-%02d", i+1)
		all = append(all, Key(name, ntfy(n.Fine, name)))
	}
	for i := range all {
		if all[i].Name != "duty" {
			all[i].Inbox = 7 * 24 * time.Hour
		}
	}
	return all
}

// ntfy returns the notification URL of a topic at a server. The topic is the name of the destination.
func ntfy(p *Pager, topic string) string {
	return "ntfy://" + strings.TrimPrefix(p.URL, "http://") + "/" + topic
}

// evening lets a quiet evening pass.
func (n *Night) evening(t testing.TB) {
	for i := range 10 {
		n.send(t, fmt.Sprintf("host-%02d", i+1), "title", "Updates are installed", "type", "success")
	}
	n.remember(t)
	for _, b := range [][2]string{
		{"nightly&exit=0", "copied 1,204 files"},
		{"hourly&exit=0", ""},
		{"offsite&exit=23", "rsync: connection to offsite.example lost"},
		{"archive&state=start", ""},
	} {
		if got := n.Post("/notify/backups?beat="+b[0], "text/plain", b[1]); got.Status >= 300 {
			t.Fatalf("the beat %s: %d %s", b[0], got.Status, got.Body)
		}
	}
}

// plan plans messages and silences, and asks.
func (n *Night) plan(t testing.TB) {
	n.send(t, "family", "title", "Take out the bins", "send_at", "2h")
	n.send(t, "family", "title", "Holiday in 3 days", "send_at", "8h")
	n.AddSilence("lab", "for=6h&incident=oven&reason=a+test&who=Ann")
	n.AddSilence("attic", "for=4h&title=The+attic&reason=the+roofer+comes&who=Bob")
	n.ask(t, "Deploy 1.4?", `{"options": ["yes", "no"], "timeout": "4h", "default": "no"}`)
	n.ask(t, "Open the gate?", `{"options": ["open", "keep closed"], "timeout": "4h"}`)
	n.ask(t, "Reboot web-1?", `{"options": ["yes", "no"], "timeout": "10m", "default": "no"}`)
	questions, restart := n.Rooms().Questions, n.ask(t, "Restart db1?", `{"options": ["yes", "no"], "timeout": "4h"}`)
	x, err := questions.Get(t.Context(), restart)
	if err != nil {
		t.Fatal(err)
	}
	if _, first, err := questions.Answer(t.Context(), &ask.At{Question: x, Through: x.Targets[0]}, "yes", "Ann"); !first {
		t.Fatal("the answer does not count: ", err)
	}
}

// ask asks a question of the key approvals, and returns its ID.
func (n *Night) ask(t testing.TB, title, question string) uuid.UUID {
	t.Helper()
	got := n.Post("/notify/approvals", TypeJSON, fmt.Sprintf(`{"title": %q, "body": "See the dashboard.", "ask": %s}`, title, question))
	id, err := uuid.Parse(got.JSON(t).ID)
	if err != nil {
		t.Fatalf("%s: %d %s", title, got.Status, got.Body)
	}
	return id
}

// fail lets destinations fail and opens the incidents that silences match.
func (n *Night) fail(t testing.TB, pass func(time.Duration)) {
	for i := range 3 {
		n.send(t, "everyone", "title", fmt.Sprintf("Storm warning %d", i+1), "type", "warning", "wait", "1s")
		pass(2 * time.Minute)
	}
	n.send(t, "lab", "title", "The lab is hot", "type", "failure", "incident", "oven")
	n.send(t, "attic", "title", "The attic is wet", "type", "warning", "incident", "attic")
}

// send sends a message with fields, given as names and values.
func (n *Night) send(t testing.TB, key string, fields ...string) {
	t.Helper()
	form := url.Values{"body": {"See the dashboard."}}
	for pair := range slices.Chunk(fields, 2) {
		form.Set(pair[0], pair[1])
	}
	if got := n.PostForm("/notify/"+key, form.Encode()); got.Status >= 500 || got.Status >= 300 && got.Status < 424 {
		t.Fatalf("a message to %s: %d %s", key, got.Status, got.Body)
	}
}
