package caddyhttp

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/rulestest"
)

// bubbleGateway is a gateway in a bubble, for a model. Its destinations are outside.
type bubbleGateway struct {
	t     *testing.T
	model *rulestest.Model
	dest  string // the address of the destinations
	base  string // where the folders of the queue are
	dirs  int
	clock atomic.Int64 // of the bubble, for the destinations
	h     *Handler
}

func (g *bubbleGateway) dir() string { return filepath.Join(g.base, fmt.Sprint(g.dirs)) }

// start starts the gateway with the folder.
func (g *bubbleGateway) start() {
	g.h = newQueueGateway(g.t, g.dir()+"\nkeep 30d", managed, "public_url "+publicURL+"\n"+g.model.Block(g.dest))
}

func (g *bubbleGateway) restart(how rulestest.Restart) {
	before := g.h
	switch how {
	case rulestest.Reloaded:
		g.start()
		stopApp(g.t, before)
	case rulestest.Stopped:
		stopApp(g.t, before)
		g.start()
	case rulestest.Killed:
		stopApp(g.t, before) // what it does is lost
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
	store := g.h.app.gateway.Rooms.Outbox.Store
	go func() { w.CloseWithError(store.Backup(g.t.Context(), w)) }()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(in)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(next, h.Name), data, 0o600)
		}
		if err != nil {
			g.t.Error(err)
			return
		}
	}
}

func (g *bubbleGateway) do(method, path string, form url.Values) (status int, body []byte) {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", typeJSON)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", typeForm)
	}
	got := do(g.t, g.h, r)
	synctest.Wait()
	g.clock.Store(time.Now().UnixMicro())
	return got.status, []byte(got.body)
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
	worlds := 4 // one of each kind
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
			inBubble(t, func(t *testing.T) {
				g.t = t
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
