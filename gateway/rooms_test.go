package gateway_test

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestRooms checks what every kind of records promises, for each kind of each room: what one key
// can have of it, and what becomes of it with another gateway, a kill, and a key that is removed or
// moved.
func TestRooms(t *testing.T) {
	t.Parallel()
	for _, kind := range outbox.Kinds() {
		c, ok := kindCases[kind]
		if !ok || kind.OfKeys() && c.fill == nil && kindCases[c.with].fill == nil || c.make == nil && !c.brief {
			t.Errorf("no test fills the queue with %s, or none adds one", kind)
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			if c.fill != nil {
				t.Run("shares", func(t *testing.T) {
					x := &kindTest{
						ok: gatewaytest.NewPager(t, http.StatusOK), refuses: gatewaytest.NewPager(t, http.StatusBadRequest),
						fails:  gatewaytest.NewPager(t, http.StatusServiceUnavailable),
						phones: gatewaytest.NewPushService(t),
					}
					dir := t.TempDir()
					gatewaytest.InBubble(t, func(t *testing.T) { testKind(t, kind, x, dir, c.fill) })
				})
			}
			if c.make != nil {
				t.Run("life", func(t *testing.T) { testLife(t, kind, c) })
			}
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

// maxSize is the maximum size of the queue.
func (x *kindTest) maxSize() int64 { return x.Rooms().Outbox.Queue.MaxSize() }

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
			of[cmp.Or(kindCases[kind].counts, kind)] += n
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

// records returns the names of the records of a kind.
func (x *live) records(kind *outbox.Kind) (names []queue.Hash) {
	x.t.Helper()
	all, err := cmp.Or(x.store, x.Rooms().Outbox.Store).SurplusRecords(x.t.Context(), 0, 1_000_000)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, name := range all {
		record, err := x.Rooms().Outbox.Queue.Records.Get(x.t.Context(), name)
		if err != nil {
			x.t.Fatal(err)
		}
		if outbox.KindOf(record) == kind {
			names = append(names, name)
		}
	}
	return names
}

// punctual reports whether the room of a kind looks each second for what is due.
func (x *live) punctual(kind *outbox.Kind) bool {
	conf := &x.Gateway.Gateway.Conf
	return slices.ContainsFunc(x.Rooms().All(), func(room outbox.Room) bool {
		may := room.Punctual(conf)
		return slices.Contains(room.Kinds(), kind) && may != nil && may()
	})
}

// do posts a form that has to succeed.
func (x *live) do(target, form string) {
	x.t.Helper()
	if got := x.PostForm(target, form); got.Status != http.StatusOK {
		x.t.Fatal(target, got.Status, got.Body)
	}
}

// testLife checks what becomes of a record of a kind.
func testLife(t *testing.T, kind *outbox.Kind, c kindCase) {
	p, phones, made := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPushService(t), ""
	if c.refuses {
		p.Answer(http.StatusBadRequest)
	}
	dirs, storage := []string{t.TempDir(), t.TempDir(), t.TempDir()}, storagetest.New(t.TempDir())
	gatewaytest.InBubble(t, func(t *testing.T) {
		start := func(dir string, store *bolt.Store) *live {
			k := gatewaytest.Key("k", p.NotifyURL())
			if c.key == k.Name {
				k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Hour}}}
			}
			o := gatewaytest.Options{
				Global: gatewaytest.PushOptions(k), Site: site.Options{Managers: gatewaytest.Everybody()}, Storage: storage,
				Saved: &saved.Options{Manage: true, Trusted: true, Refresh: time.Nanosecond, KeySettings: site.KeySettings{
					Inbox: time.Hour, Rules: &rules.Rules{Rate: []rules.Rate{{Count: 5, Per: 24 * time.Hour}}},
				}},
				Queue: &outbox.Settings{Path: dir, Secret: "a secret of the tests", Keep: time.Hour}, Shared: store,
			}
			if kind == heartbeat.KindWatchdog {
				o.Queue.Watchdog = &outbox.Watchdog{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Interval: time.Minute}
			}
			return &live{gatewaytest.New(t, o), t, store, phones, &made}
		}
		var names []queue.Hash
		look := func(what string, x *live, key, want string) {
			t.Helper()
			synctest.Wait()
			if c.sees == nil {
				return
			}
			if got := c.sees(x, key); got != want {
				t.Errorf("%s: the key %s has %q, want %q", what, key, got, want)
			}
		}
		has := func(what string, x *live) {
			t.Helper()
			got := x.records(kind)
			for _, name := range names {
				if !slices.Contains(got, name) {
					t.Errorf("%s: a record is lost: there are %d of %d", what, len(got), len(names))
				}
			}
		}
		ended := func(what string, x *live, told int) {
			t.Helper()
			left := x.records(kind)
			gone := !slices.ContainsFunc(names, func(n queue.Hash) bool { return slices.Contains(left, n) })
			if c.told+c.then == "" && !gone {
				t.Errorf("%s: of %d records, some are left", what, len(names))
			}
			if got := p.Told()[told:]; c.told != "" && !slices.Contains(got, c.told) {
				t.Errorf("%s: told %q, want %q", what, got, c.told)
			}
		}
		store := gatewaytest.NewStore(t, "a secret of the tests")
		x, other := start(dirs[0], store), start(dirs[1], store)
		urls := "urls=" + p.NotifyURL()

		key := c.key
		if key == "" { // a key that is removed, and a new one of the same name
			x.do("/add/old", urls)
			before := x.place("old")
			c.make(x, "old")
			time.Sleep(15 * time.Second)
			if c.sees != nil && c.sees(x, "old") == "" {
				t.Error("nobody sees the record")
			}
			x.do("/del/old", "")
			x.do("/add/old", urls)
			if x.place("old") == before {
				t.Error("a new key has the place of one that was removed")
			}
			time.Sleep(15 * time.Second)
			if n := len(x.records(kind)); c.forgets && n > 0 {
				t.Errorf("after the key was removed, %d records are left", n)
			}
			look("after the key was removed", x, "old", "")
			look("at the other gateway, after the key was removed", other, "old", "")
			key = "saved"
			x.do("/add/saved", urls)
		}
		others := x.records(kind)
		c.make(x, key)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		names = slices.DeleteFunc(x.records(kind), func(n queue.Hash) bool { return kind.OfKeys() && c.key == "" && slices.Contains(others, n) })
		want := ""
		if len(names) == 0 {
			t.Fatalf("there are no %s", kind)
		}
		if c.sees != nil {
			want = c.sees(x, key)
			if want == "" {
				t.Error("nobody sees the record")
			}
		}
		look("at the other gateway", other, key, want)
		if x.punctual(kind) != other.punctual(kind) {
			t.Error("the other gateway does not look for what is due as often")
		}
		if c.key == "" {
			x.do("/move/saved", "to=moved")
			key = "moved"
			time.Sleep(10 * time.Second)
			look("after the key was moved", x, key, want)
			look("at the other gateway, after the key was moved", other, key, want)
			has("after the key was moved", x)
		}
		killed := x.BackUp(dirs[2])
		x.Stop()
		next := start(killed, nil)
		has("after a kill", next)
		look("after a kill", next, key, want)
		next.Stop()
		if c.ends == 0 {
			return
		}
		told := p.Count()
		if c.ends > time.Hour {
			other.Stop() // what it would do takes too long
		}
		time.Sleep(c.ends + time.Minute)
		if c.ends <= time.Hour {
			look("when its time was over, at the other gateway", other, key, c.then)
			ended("at the other gateway", other, told)
		}
		told = p.Count()
		next = start(killed, nil)
		time.Sleep(90 * time.Minute) // a ruler has the time in which no gateway ran once more, and an inbox an hour
		look("when its time was over, after a kill", next, key, c.then)
		ended("after a kill", next, told)
	})
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
