package alerting_test

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/rulestest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// bubbleGateway is a gateway in a bubble, for a model. Its destinations are outside.
type bubbleGateway struct {
	t       *testing.T
	model   *rulestest.Model
	dest    string // the address of the destinations
	base    string // where the folders of the queue are
	dirs    int
	clock   atomic.Int64 // of the bubble, for the destinations
	process *gatewaytest.Process
	now     *gatewaytest.Gateway
}

func (g *bubbleGateway) dir() string { return filepath.Join(g.base, fmt.Sprint(g.dirs)) }

// start starts the gateway with the folder.
func (g *bubbleGateway) start() {
	o := withManagers(gatewaytest.Queued(g.dir(), readKey(g.t, g.model.Block(g.dest))))
	o.Global.PublicURL, o.Queue.Keep, o.Process = gatewaytest.PublicURL, 30*24*time.Hour, g.process
	g.now = gatewaytest.New(g.t, o)
}

// readKey reads the key of a model from the lines of a Caddyfile.
func readKey(t *testing.T, block string) (k site.KeyOptions) {
	t.Helper()
	r := new(rules.Rules)
	var scope *rules.Scope // of the rule whose block this is
	for line := range strings.Lines(block) {
		words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), "{"))
		if len(words) == 0 || words[0] == "}" {
			continue
		}
		switch args := words[1:]; words[0] {
		case "key":
			k.Name = args[0]
		case "url":
			k.URLs = append(k.URLs, site.URL{URL: args[0], Tags: args[1:]})
		case "expect":
			k.Expects = append(k.Expects, readExpect(t, strings.TrimSpace(line)))
		case "title":
			r.Windows[len(r.Windows)-1].Title = args[0]
		case "types":
			for _, text := range args {
				scope.Types = append(scope.Types, notifier.Type(text))
			}
		case "repeat":
			n, err := strconv.Atoi(args[0])
			if err != nil {
				t.Fatal(err)
			}
			r.Escalate.Repeat = n
		case "ack":
			r.Escalate.Ack = duration(t, args[0])
		default:
			scope = addRule(t, r, words[0], args)
		}
	}
	if err := r.Check(); err != nil {
		t.Fatalf("%v: %s", err, block)
	}
	k.Rules = r
	return k
}

// readExpect reads a line with a name, every and a time or cron and a schedule, grace and
// max_run.
func readExpect(t *testing.T, line string) (o site.BeatOptions) {
	t.Helper()
	var when, times string
	if before, schedule, ok := strings.Cut(line, ` cron "`); ok {
		fields, rest, _ := strings.Cut(schedule, `" `)
		zone, rest, _ := strings.Cut(rest, " ")
		c, err := rules.ParseCalendar(fields, zone)
		if err != nil {
			t.Fatal(err)
		}
		o.Calendar, line = c, before+" "+rest
	} else if before, rest, ok := strings.Cut(line, " every "); ok {
		when, times, _ = strings.Cut(rest, " ")
		o.Every, line = duration(t, when), before+" "+times
	}
	words := strings.Fields(line) // expect, a name, grace and a time, max_run and a time
	o.Name, o.Grace, o.MaxRun = words[1], duration(t, words[3]), duration(t, words[5])
	return o
}

// addRule adds a rule with arguments as a Caddyfile has them, and returns its scope.
func addRule(t *testing.T, r *rules.Rules, name string, args []string) *rules.Scope {
	t.Helper()
	text := strings.Join(args, " ")
	switch name {
	case "dedupe":
		r.Dedupe = &rules.Dedupe{Window: duration(t, text)}
		return &r.Dedupe.Scope
	case "hold":
		r.Hold = &rules.Lasting{For: duration(t, text)}
		return &r.Hold.Scope
	case "escalate": // after a time
		r.Escalate = escalate(duration(t, args[1]))
		return &r.Escalate.Scope
	case "quiet":
		r.Quiet = append(r.Quiet, rules.Quiet{Window: window(text)})
		return &r.Quiet[len(r.Quiet)-1].Scope
	case "silence":
		r.Windows = append(r.Windows, rules.SilenceWindow{Window: window(text)})
		return nil // it has no scope
	case "digest":
		if r.Digest = new(rules.Digest); len(args) > 1 {
			r.Digest.Moment = moment(text)
		} else {
			r.Digest.Every = duration(t, text)
		}
		return &r.Digest.Scope
	case "rate":
		rate, err := rules.ParseRate(text, time.ParseDuration)
		if err != nil {
			t.Fatal(err)
		}
		r.Rate = append(r.Rate, rate)
		return &r.Rate[len(r.Rate)-1].Scope
	}
	t.Fatalf("there is no rule %q", name)
	return nil
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (g *bubbleGateway) restart(how rulestest.Restart) {
	before := g.now
	switch how {
	case rulestest.Reloaded:
		g.start()
		before.Stop()
	case rulestest.Stopped:
		before.Stop()
		g.start()
	case rulestest.Killed:
		before.Stop() // what it does is lost
		g.dirs++
		g.start()
	}
}

// snapshot copies what the gateway has stored. It runs while the gateway waits for a
// destination.
func (g *bubbleGateway) snapshot() {
	next := filepath.Join(g.base, fmt.Sprint(g.dirs+1))
	if err := os.MkdirAll(filepath.Join(next, "files"), 0o700); err != nil {
		g.t.Error(err)
	}
	key, err := os.ReadFile(filepath.Join(g.dir(), "key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(next, "key"), key, 0o600)
	}
	if err != nil {
		g.t.Error(err)
	}
	r, w := io.Pipe()
	store := g.now.Rooms().Outbox.Store
	go func() { w.CloseWithError(store.Backup(g.t.Context(), w)) }()
	for in := tar.NewReader(r); ; {
		file, err := in.Next()
		if err == io.EOF {
			return
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(in)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(next, file.Name), data, 0o600)
		}
		if err != nil {
			g.t.Error(err)
			return
		}
	}
}

func (g *bubbleGateway) do(method, path string, form url.Values) (status int, body []byte) {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", gatewaytest.TypeJSON)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
	}
	if body := form.Get(rulestest.JSONBody); body != "" {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", gatewaytest.TypeJSON)
	}
	got := g.now.Do(r)
	synctest.Wait()
	g.clock.Store(time.Now().UnixMicro())
	return got.Status, []byte(got.Body)
}

func (g *bubbleGateway) wait(d time.Duration) {
	const look = 10 * time.Second
	for d > 0 {
		time.Sleep(min(d, look))
		synctest.Wait()
		g.clock.Store(time.Now().UnixMicro())
		d -= look
	}
}

// memoryFolder returns a folder in memory if the system has one: the model makes thousands
// of commits, and is not about the disk.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "notify-model-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestRulesModel holds the rules in this gateway, with its queue and its embedded store,
// to what is promised: random messages, incidents, rules, outages, kills, silences and
// acknowledgements. It makes 2,000 steps with all cases, and 400 otherwise.
func TestRulesModel(t *testing.T) {
	t.Parallel()
	const steps = 100
	worlds := 7 // one of each kind
	if racetest.All() {
		worlds = 20
	}
	for seed := range worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := &bubbleGateway{t: t, base: memoryFolder(t)}
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.model.ServeHTTP(w, r) }))
			s.Config.SetKeepAlivesEnabled(false)
			s.Start()
			t.Cleanup(s.Close)
			g.dest = strings.TrimPrefix(s.URL, "http://")
			g.model = rulestest.New(rulestest.Gateway{
				Do: g.do, Wait: g.wait, Restart: g.restart, Snapshot: g.snapshot,
				Now: func() time.Time { return time.UnixMicro(g.clock.Load()) }, Slack: 10 * time.Second,
			}, "k", uint64(seed), time.Minute) //nolint:gosec // not negative
			gatewaytest.InBubble(t, func(t *testing.T) {
				g.t, g.process = t, gatewaytest.NewProcess(t)
				g.clock.Store(time.Now().UnixMicro())
				g.start()
				for range steps {
					if err := g.model.Step(); err != nil {
						t.Fatalf("%v\n%s", err, g.model.Log())
					}
				}
				problems := g.model.Finish(48 * time.Hour)
				for _, p := range problems {
					t.Error(p)
				}
				if len(problems) > 0 {
					t.Log(g.model.Log())
				}
			})
		})
	}
}
