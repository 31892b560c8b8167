// Package process holds the state that the configurations of a process share: the dispatcher with
// its connections, history and metrics, the running gateways, the open log writers, and the logins
// of mail clients. While Caddy replaces a configuration, both use it, so that connections, sessions
// and tokens survive.
package process

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

// Process has the state that all configurations of the process share. It exists as long as there is
// a [Use] of it.
type Process struct {
	Gateways  Gateways
	Logs      Logs
	Mail      smtpd.Replaced
	Passwords *smtpd.Passwords // of mail clients; it remembers logins over reloads
	Parsed    atomic.Int64     // URLs of configurations since the last gateway was started

	dispatcher *dispatch.Dispatcher
}

func newProcess() *Process {
	p := &Process{Passwords: smtpd.NewPasswords()}
	p.dispatcher = gateway.New(version.Agent, p.Gateways.Newest, p.queueState)
	return p
}

// queueState returns the state of the queue of the newest gateway, or nil if it has none.
func (p *Process) queueState(ctx context.Context) *metrics.QueueState {
	if g := p.Gateways.Newest(); g != nil && g.Rooms != nil {
		return g.Rooms.State(ctx)
	}
	return nil
}

// Destruct implements caddy.Destructor.
func (p *Process) Destruct() error {
	gateway.CloseDispatcher(p.dispatcher)
	return nil
}

// Pool has the one [Process], if there is any, and counts its uses. Tests replace it.
var Pool = caddy.NewUsagePool()

// Name is the name of the [Process] in [Pool].
const Name = "notify"

// Running returns the gateway that was started last, or nil if none runs.
func Running() (g *gateway.Gateway) {
	Pool.Range(func(_, p any) bool {
		g = p.(*Process).Gateways.Newest()
		return false
	})
	return g
}

// Use is one use of the [Process], and of destinations in it. The zero value is not a use.
type Use struct {
	*dispatch.Dispatcher
	Process *Process

	loaded bool
	pool   *caddy.UsagePool  // that counts the use
	used   *usedDestinations // nil before Load
}

// usedDestinations are the destinations of a [Use].
type usedDestinations struct {
	mu  sync.Mutex
	all []*notifier.Destination
}

// Load begins the use, and creates the [Process] if there is none.
func (u *Use) Load() error {
	pool := Pool
	p, _, err := pool.LoadOrNew(Name, func() (caddy.Destructor, error) {
		return newProcess(), nil
	})
	if err != nil {
		return err
	}
	u.Process, u.loaded, u.pool, u.used = p.(*Process), true, pool, new(usedDestinations)
	u.Dispatcher = u.Process.dispatcher
	return nil
}

// Parse returns the destination of a URL of the operator and keeps it until
// Release. On a reload the new configuration parses its URLs before the old one
// releases its own, so that destinations in both stay open. Several goroutines may
// call it at once.
func (u *Use) Parse(url string, files notifier.Files) (*notifier.Destination, error) {
	d, err := u.Sender.ParseWithFiles(url, nil, files)
	if err == nil {
		u.Process.Parsed.Add(1)
		u.used.mu.Lock()
		u.used.all = append(u.used.all, d)
		u.used.mu.Unlock()
	}
	return d, err
}

// Release ends the use. Calls without a use do nothing: Caddy also cleans up a
// module whose provisioning failed. Requests that outlive their configuration
// can go on using the process and its destinations.
func (u *Use) Release() error {
	if !u.loaded {
		return nil
	}
	u.loaded = false
	for _, d := range u.used.all {
		u.Sender.Release(d)
	}
	u.used = nil
	_, err := u.pool.Delete(Name)
	return err
}

// FilesChanged reports whether a file that the running configuration names has another content
// than when the configuration was loaded.
func FilesChanged() (changed bool) {
	Pool.Range(func(_, p any) bool {
		changed = p.(*Process).Gateways.newest().filesChanged()
		return false
	})
	return changed
}

// Gateways are the gateways that Caddy has started and not stopped. There are two while one
// configuration replaces another.
type Gateways struct {
	mu  sync.Mutex
	all []running
}

// running is a gateway that was started.
type running struct {
	gateway      *gateway.Gateway
	filesChanged func() bool
}

// Add adds a gateway that was started. filesChanged reports whether the files that its
// configuration names have changed since.
func (s *Gateways) Add(g *gateway.Gateway, filesChanged func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, running{g, filesChanged})
}

// Remove removes a gateway that is being stopped.
func (s *Gateways) Remove(g *gateway.Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(x running) bool { return x.gateway == g })
}

// Newest returns the gateway that was started last, or nil if none runs.
func (s *Gateways) Newest() *gateway.Gateway { return s.newest().gateway }

func (s *Gateways) newest() running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return running{filesChanged: func() bool { return false }}
	}
	return s.all[len(s.all)-1]
}
