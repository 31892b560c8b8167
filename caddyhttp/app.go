package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App holds what all sites share: the keys that every site may use, and the
// settings for sites that do not set their own. Events and logs use its keys.
//
// In a Caddyfile it is the global option `notify`, which takes the same block
// as the directive.
type App struct {
	Settings

	// Keeps messages that cannot be delivered at once, and delivers them later.
	// Default: no queue, so a message is delivered before the response or not at
	// all, and the response says which.
	Queue *Queue `json:"queue,omitempty"`

	// Takes messages as mails. Default: none.
	SMTP *SMTP `json:"smtp,omitempty"`

	// Lets phones and browsers subscribe to keys with Web Push. It needs the queue and a
	// public_url. Default: none.
	Push *Push `json:"push,omitempty"`

	gateway.Gateway `json:"-"`

	shared   sharedRef
	handlers []*Handler // those of sites, in the same order
	allSites int        // how many sites there will be, if a check waits for the last one
	settled  *settled
	spaces   *saved.Spaces
	saved    *saved.Keys // for mails; nil if there are none

	unknownSources []unknownSource // that keys accept

	ready func()       // closes started
	mail  *mailGateway // nil for none

	emitter emitter
	trim    *time.Timer // returns memory after the start; nil for few URLs

	storage   certmagic.Storage
	stopSweep func() // nil before the start
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "notify",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision implements caddy.Provisioner.
func (a *App) Provision(ctx caddy.Context) error {
	a.Log, a.Started = ctx.Logger(), make(chan struct{})
	protectStdLog()
	a.spaces = &saved.Spaces{Storage: ctx.Storage()}
	a.ready = sync.OnceFunc(func() { close(a.Started) })
	a.SiteIndex = sync.OnceValue(a.indexSites)
	a.Tracers = sync.OnceValue(a.findTracers)
	if err := a.shared.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	a.Engine.Shared, a.Engine.Emit = a.shared.Dispatcher, func(name string, data func() map[string]any) { a.emitter.emit(name, data) }
	a.storage = ctx.Storage()
	a.shared.Sender.KeepStates(stateStore{a.storage})
	if err := a.shared.Metrics.Register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	push, err := a.Push.resolve()
	if err != nil {
		return logRejected(a.Log, a.Caddyfile.locate("push", errs.Prefix("push", err)))
	}
	if a.settled, err = a.resolve(nil, push, a.shared.parse, a.Log); err != nil {
		return logRejected(a.Log, err)
	}
	a.Global = a.settled.Site
	a.Global.Devices = newKeyDevices(a, a.Global).Receivers()
	if a.settled.configs != nil { // also if no site uses it
		if _, err := a.spaces.Join(a.settled.configs.spaceOptions(), a.configsOwner(a)); err != nil {
			return logRejected(a.Log, a.Caddyfile.locate("configs", errs.Prefix("configs", err)))
		}
	}
	if a.Queue != nil {
		if a.QueueSettings, err = a.Queue.resolve(); err != nil {
			return logRejected(a.Log, a.Caddyfile.locate("queue", fmt.Errorf("queue: %w", err)))
		}
	}
	if a.QueueSettings != nil {
		a.QueueSettings.Punctual = a.Push != nil
	}
	if err := a.checkEffects(); err != nil {
		return logRejected(a.Log, err)
	}
	for _, r := range a.shared.process.logs.expectedBy(ctx) {
		if _, _, err := r.find(a.Global); err != nil {
			return logRejected(a.Log, r.Caddyfile.describe("log output notify: ", err))
		}
	}
	// Last, because loading the events app provisions its handlers, which look
	// up keys in this app.
	if a.emitter, err = newEmitter(ctx); err != nil {
		return err
	}
	return logRejected(a.Log, cmp.Or(a.provisionSMTP(ctx), a.awaitSites(ctx)))
}

// Check makes the checks for which all apps must be provisioned. It returns an
// error if something can have no effect, such as a site that no request reaches, and
// logs a warning about sites that look open. Start calls it; a program that only
// provisions a configuration can call it, too.
func (a *App) Check() error {
	if err := cmp.Or(a.checkSites(), a.checkReach()); err != nil {
		return err
	}
	a.warnUnguarded()
	return nil
}

// Start implements caddy.App. From now on the admin API shows this app, and
// logs and the queue send with it. All apps are provisioned, so that the routes
// of all sites are known.
func (a *App) Start() error {
	defer a.ready()
	defer a.Caddyfile.trim() // of what errors of sites and of the start may name
	if err := a.Check(); err != nil {
		return logRejected(a.Log, err)
	}
	a.SiteIndex() // so that the first message does not have to make it
	if err := a.openQueue(); err != nil {
		return logRejected(a.Log, a.Caddyfile.locate("queue", err))
	}
	if err := a.startSMTP(); err != nil {
		a.leaveQueue()
		return logRejected(a.Log, err)
	}
	a.shared.process.apps.add(a)
	if a.shared.process.parsed.Swap(0) >= manyURLs {
		a.trim = time.AfterFunc(trimAfter, debug.FreeOSMemory)
	}
	a.startSweep()
	return nil
}

// Loading a configuration takes several times the memory that it has later. If
// the configuration has at least manyURLs URLs, unused memory is returned to
// the operating system once trimAfter has passed since the start. This takes
// about 100 ms of CPU time. Otherwise the runtime would keep most of the
// memory.
const (
	manyURLs  = 3000
	trimAfter = time.Second
)

// Stop implements caddy.App. Requests under way finish.
func (a *App) Stop() error {
	if a.trim != nil {
		a.trim.Stop()
	}
	if a.stopSweep != nil {
		a.stopSweep()
	}
	if a.mail != nil {
		a.mail.stop(a.shared.process.apps.newest() != a)
	}
	a.finish()
	a.shared.process.apps.remove(a)
	a.leaveQueue()
	if a.shared.process.apps.newest() == nil {
		a.shared.process.logs.discard()
	}
	return nil
}

// Cleanup implements caddy.CleanerUpper.
func (a *App) Cleanup() error {
	if a.ready != nil {
		a.ready()
	}
	a.saved.Close()
	return errors.Join(a.releaseQueue(), a.shared.release())
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
