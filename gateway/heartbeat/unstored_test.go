package heartbeat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestBeatThatCannotBeStored checks that a beat is answered with 503 while the store cannot be
// written. The message about a failed beat is sent all the same, and not again when the job tries
// again. The next beat is told as back when the store has it.
func TestBeatThatCannotBeStored(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, nightlyKey(p))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		u.Down.Store(true)
		for _, query := range []string{"", "&state=start", "&exit=3", "&exit=3", "&type=failure"} {
			got := beat(t, g, http.MethodPost, "/notify/k?beat=nightly"+query, "", http.StatusServiceUnavailable)
			if got.Header.Get("Retry-After") == "" || !strings.Contains(got.Body, "cannot store messages at the moment") {
				t.Errorf("%q: %v %s", query, got.Header, got.Body)
			}
		}
		time.Sleep(time.Second)
		failed := "failure: nightly has failed, exit 3 | The beat came with the exit code 3."
		told := []string{failed, "failure: nightly has failed | The beat came with the type failure."}
		p.WantTold(t, told...)
		u.Down.Store(false)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly&exit=3", "", http.StatusOK)
		time.Sleep(time.Second)
		told = append(told, failed)
		p.WantTold(t, told...)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		if all := p.Told(); len(all) != 4 || !strings.HasPrefix(all[3], "success: nightly is back | The beat has come. It failed at") {
			t.Errorf("told %q", all)
		}
	})
}

// TestBackFromUnstoredFailure checks that whoever was told of a failure that could not be stored
// hears once that the beat is back, although the failure was not sent again.
func TestBackFromUnstoredFailure(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, nightlyKey(p))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		u.Down.Store(true)
		time.Sleep(2 * time.Minute)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly&exit=3", "", http.StatusServiceUnavailable)
		failed := time.Now().UTC().Format("15:04 UTC")
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusServiceUnavailable)
		u.Down.Store(false)
		time.Sleep(2 * time.Minute)
		for range 2 {
			beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
			time.Sleep(time.Second)
		}
		all := p.Told()
		if len(all) != 2 || !strings.HasPrefix(all[1], "success: nightly is back | The beat has come. It failed at ") ||
			!strings.HasSuffix(all[1], failed+".") {
			t.Errorf("told %q", all)
		}
	})
}

// TestBeatInFullQueue checks that a beat that has failed is known although the queue is full, and
// that its message is sent: by rules to all numbers, and otherwise once.
func TestBeatInFullQueue(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*rules.Rules{
		"no rules": nil,
		"escalate": {Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute}, Repeat: 1, Ack: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, down := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				k := nightlyKey(p)
				if r != nil {
					k.URLs, k.Rules = gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC 1:oncall").URLs, r
				}
				g := gatewaytest.New(t, gatewaytest.Options{
					Global: site.Options{PublicURL: "https://alerts.example.com", Keys: []site.KeyOptions{k, gatewaytest.Key("full", down.NotifyURL())}},
					Queue:  &outbox.Settings{Path: dir, MaxSize: 64 << 10},
				})
				for _, size := range []int{4000, 1} {
					for i := 0; g.PostForm("/notify/full", "body="+strings.Repeat("x", size)).Status == http.StatusOK; i++ {
						if i > 1000 {
							t.Fatal("the queue is never full")
						}
					}
				}
				beat(t, g, http.MethodPost, "/notify/k?beat=nightly&exit=3", "", http.StatusOK)
				time.Sleep(time.Second)
				p.WantTold(t, "failure: nightly has failed, exit 3 | The beat came with the exit code 3.")
				beats, err := g.Rooms().Beats.AllBeats(t.Context())
				if err != nil || len(beats) != 1 || beats[0].Beat.State != rules.BeatFailed {
					t.Errorf("%+v %v", beats, err)
				}
			})
		})
	}
}
