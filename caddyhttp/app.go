package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	_ "github.com/caddy-notify/caddy-notify/caddyhttp/admin" // the admin API, a module of its own
	"github.com/caddy-notify/caddy-notify/caddyhttp/events"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/files"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/caddyhttp/logs"
	"github.com/caddy-notify/caddy-notify/caddyhttp/routing"
	"github.com/caddy-notify/caddy-notify/caddyhttp/smtp"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
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
	Settings // embedded for JSON; App has most of its methods from Settings

	// Keeps messages that cannot be delivered at once, and delivers them later.
	// Default: no queue, so a message is delivered before the response or not at
	// all, and the response says which.
	Queue *Queue `json:"queue,omitempty"`

	// Takes messages as mails. Default: none.
	SMTP *smtp.Config `json:"smtp,omitempty"`

	// Lets phones and browsers subscribe to keys with Web Push. It needs the queue and a
	// public_url. Default: none.
	Push *Push `json:"push,omitempty"`

	gateway gateway.Gateway

	shared   process.Use
	handlers []*Handler // the handlers of sites, in the same order
	allSites int        // how many sites there will be, if a check waits for the last one
	settled  *settled
	files    files.Set // that the configuration names
	spaces   *saved.Spaces
	saved    *saved.Keys // for mails; nil if there are none

	unknownSources []unknownSource // that keys accept

	ready func()       // closes started
	mail  *smtp.Server // nil for none

	ctx     caddy.Context
	emitter *events.Emitter
	trim    *time.Timer // returns memory after the start; nil for few URLs

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
	a.ctx, a.gateway.Conf.Log, a.gateway.Started = ctx, ctx.Logger(), make(chan struct{})
	logs.ProtectStandard()
	a.addFiles(&a.Settings, a.locate(appID, a))
	a.SMTP.AddFiles(&a.files)
	a.ready = sync.OnceFunc(func() { close(a.gateway.Started) })
	a.gateway.Conf.SiteIndex = sync.OnceValue(func() *site.Index { return a.Routes().Index() })
	a.gateway.Conf.Tracers = sync.OnceValue(func() trace.TracerProvider { return a.Routes().Tracers() })
	if err := a.shared.Load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	a.gateway.Conf.Shared = a.shared.Dispatcher
	a.gateway.Conf.Emit = func(name string, data func() map[string]any) { a.emitter.Emit(name, data) }
	a.gateway.Conf.Subscribed = func(name string) bool { return a.emitter.Subscribed(name) }
	a.spaces = &saved.Spaces{Storage: ctx.Storage(), Emit: a.gateway.Conf.Emit, Forget: a.gateway.ForgetKey}
	a.shared.Sender.KeepStates(stateStore{ctx.Storage()})
	if err := a.shared.Metrics.Register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	push, err := a.Push.resolve()
	if err != nil {
		return block.LogRejected(a.gateway.Conf.Log, a.Caddyfile.Locate("push", errs.Prefix("push", err)))
	}
	if a.settled, err = a.resolve(nil, push, a.shared.Parse, a.gateway.Conf.Log); err != nil {
		return block.LogRejected(a.gateway.Conf.Log, err)
	}
	a.gateway.Conf.Global = a.settled.Site
	a.gateway.Conf.Global.Devices = newKeyDevices(a, a.gateway.Conf.Global).Receivers()
	if a.settled.configs != nil { // also if no site uses it
		if _, err := a.spaces.Join(a.settled.configs.spaceOptions(), a.configsOwner(a)); err != nil {
			return block.LogRejected(a.gateway.Conf.Log, a.Caddyfile.Locate("configs", errs.Prefix("configs", err)))
		}
	}
	if a.Queue != nil {
		if err = a.Queue.provision(ctx); err == nil {
			a.gateway.Conf.QueueSettings, err = a.Queue.resolve()
		}
		if err != nil {
			return block.LogRejected(a.gateway.Conf.Log, a.Caddyfile.Locate("queue", fmt.Errorf("queue: %w", err)))
		}
	}
	if err := a.checkEffects(); err != nil {
		return block.LogRejected(a.gateway.Conf.Log, err)
	}
	for _, r := range a.shared.Process.Logs.ExpectedBy(ctx) {
		a.files.AddSet(r.Files)
		if _, _, err := r.Find(a.gateway.Conf.Global); err != nil {
			return block.LogRejected(a.gateway.Conf.Log, r.Caddyfile.Describe("log output notify: ", err))
		}
	}
	// Last, because loading the events app provisions its handlers, which look
	// up keys in this app.
	if a.emitter, err = events.NewEmitter(ctx); err != nil {
		return err
	}
	return block.LogRejected(a.gateway.Conf.Log, cmp.Or(a.provisionMail(ctx), a.awaitSites(ctx)))
}

// Gateway returns the gateway that sends events. It is ready before the events app is loaded.
func (a *App) Gateway() *gateway.Gateway { return &a.gateway }

// Check makes the checks that need all apps provisioned. It returns an
// error if something can have no effect, such as a site that no request reaches, and
// logs a warning about sites that look open. Start calls it; a program that only
// provisions a configuration can call it, too.
func (a *App) Check() error { return a.CheckWith(nil) }

// CheckWith is Check with a function that gets each warning. If warned is nil, warnings are logged.
func (a *App) CheckWith(warned routing.WarnFunc) error {
	routes := a.Routes()
	routes.Warned = warned
	if err := cmp.Or(a.checkSites(), routes.CheckNames(), routes.CheckReach()); err != nil {
		return err
	}
	routes.WarnUnguarded()
	return nil
}

// Start implements caddy.App. From now on the admin API shows this app, and
// logs and the queue send with it. All apps are provisioned, so that the routes
// of all sites are known.
func (a *App) Start() error {
	defer a.ready()
	defer a.forgetPositions() // after the errors of sites and of the start, which need them
	if err := a.Check(); err != nil {
		return block.LogRejected(a.gateway.Conf.Log, err)
	}
	a.gateway.Conf.SiteIndex() // so that the first message does not have to make it
	if err := a.openQueue(); err != nil {
		return block.LogRejected(a.gateway.Conf.Log, a.Caddyfile.Locate("queue", err))
	}
	if err := a.startMail(); err != nil {
		a.leaveQueue()
		return block.LogRejected(a.gateway.Conf.Log, err)
	}
	a.shared.Process.Gateways.Add(&a.gateway, a.files.Changed)
	if a.shared.Process.Parsed.Swap(0) >= manyURLs {
		a.trim = time.AfterFunc(trimAfter, debug.FreeOSMemory)
	}
	sweeper := stateSweeper{storage: a.ctx.Storage(), log: a.gateway.Conf.Log, each: a.eachDestination}
	a.stopSweep = sweeper.start()
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
		a.mail.Stop(&a.shared.Process.Mail, a.shared.Process.Gateways.Newest() != &a.gateway)
	}
	a.finish()
	a.shared.Process.Gateways.Remove(&a.gateway)
	a.leaveQueue()
	if a.shared.Process.Gateways.Newest() == nil {
		a.shared.Process.Logs.Discard()
	}
	return nil
}

// Cleanup implements caddy.CleanerUpper.
func (a *App) Cleanup() error {
	if a.ready != nil {
		a.ready()
	}
	a.saved.Close()
	return errors.Join(a.releaseQueue(), a.shared.Release())
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

// finish sends what the log writers have collected and waits for all messages
// in the background, unless another configuration replaces this app.
func (a *App) finish() {
	if a.shared.Process.Gateways.Newest() != &a.gateway {
		return
	}
	a.shared.Process.Logs.Flush()
	if left := a.shared.Background.Wait(dispatch.StopTimeout); left > 0 {
		a.gateway.Conf.Log.Error("messages not sent before Caddy stopped", zap.Int("messages", left))
	}
}
