package caddyhttp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// process holds what the configurations of the process share beside that: what belongs to
// Caddy.
type process struct {
	shared    *dispatch.Dispatcher
	apps      startedApps
	logs      logSinks
	mail      smtpd.Replaced
	passwords *smtpd.Passwords // of mail clients; it remembers logins over reloads
	parsed    atomic.Int64     // URLs of configurations since the last app started
}

func newProcess() *process {
	p := &process{passwords: smtpd.NewPasswords()}
	p.shared = gateway.New(version.Agent, p.emit, p.queueState)
	return p
}

// metrics.QueueState returns the state of the queue of the newest app, or nil if it has none.
func (p *process) queueState(ctx context.Context) *metrics.QueueState {
	if app := p.apps.newest(); app != nil && app.gateway.Rooms != nil {
		return app.gateway.Rooms.State(ctx)
	}
	return nil
}

// emit emits an event of the newest app.
func (p *process) emit(name string, data func() map[string]any) {
	if app := p.apps.newest(); app != nil {
		app.emitter.emit(name, data)
	}
}

// Destruct implements caddy.Destructor.
func (p *process) Destruct() error {
	gateway.CloseDispatcher(p.shared)
	return nil
}

// sharedRef is one use of the shared value and of destinations in it. The zero
// value is not a use.
type sharedRef struct {
	*dispatch.Dispatcher
	process *process
	loaded  bool
	pool    *caddy.UsagePool  // that counts the use
	used    *usedDestinations // nil before load
}

// load takes a use of the shared value and creates it if there is none.
func (r *sharedRef) load() error {
	pool := sharedPool
	s, _, err := pool.LoadOrNew(sharedName, func() (caddy.Destructor, error) {
		return newProcess(), nil
	})
	if err != nil {
		return err
	}
	r.process, r.loaded, r.pool, r.used = s.(*process), true, pool, new(usedDestinations)
	r.Dispatcher = r.process.shared
	return nil
}

// parse returns the destination of a URL of the operator and keeps it until
// release. On a reload the new configuration parses its URLs before the old one
// releases its own, so that destinations in both stay open. Several goroutines may
// call it at once.
func (r *sharedRef) parse(url string, files notifier.Files) (*notifier.Destination, error) {
	d, err := r.Sender.ParseWithFiles(url, nil, files)
	if err == nil {
		r.process.parsed.Add(1)
		r.used.mu.Lock()
		r.used.all = append(r.used.all, d)
		r.used.mu.Unlock()
	}
	return d, err
}

// release ends the use. Calls without a use do nothing: Caddy also cleans up a
// module whose provisioning failed. Requests that outlive their configuration
// can go on using the shared value and its destinations.
func (r *sharedRef) release() error {
	if !r.loaded {
		return nil
	}
	r.loaded = false
	for _, d := range r.used.all {
		r.Sender.Release(d)
	}
	r.used = nil
	_, err := r.pool.Delete(sharedName)
	return err
}

// startedApps are the apps that Caddy has started and not stopped: two of them
// while one configuration replaces another.
type startedApps struct {
	mu   sync.Mutex
	apps []*App
}

func (s *startedApps) add(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = append(s.apps, a)
}

func (s *startedApps) remove(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = slices.DeleteFunc(s.apps, func(x *App) bool { return x == a })
}

// newest returns the app that was started last, or nil if none is running.
func (s *startedApps) newest() *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.apps) == 0 {
		return nil
	}
	return s.apps[len(s.apps)-1]
}

// sharedPool holds the one shared value of the process and counts its users.
// During a reload the old and the new configuration both use it, so that
// connections, sessions and tokens survive.
var sharedPool = caddy.NewUsagePool()

const sharedName = "notify"

// usedDestinations are the destinations of a sharedRef.
type usedDestinations struct {
	mu  sync.Mutex
	all []*notifier.Destination
}
