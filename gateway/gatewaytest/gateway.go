// Package gatewaytest builds a gateway for tests, without Caddy: on a temporary store, with
// destinations that record what they get, and with the clock of a bubble if the test runs in
// one. [New] makes a [Gateway] from the options of a site; its methods send requests to it as
// the server would.
package gatewaytest

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // tests use their URLs
)

// SiteID is the ID of the site of a gateway.
const SiteID = "site.test"

// Options are the configuration of a gateway. The zero value has no keys, no queue, no saved keys
// and no manager.
type Options struct {
	Global site.Options // of all sites; its keys belong to every site
	Site   site.Options // of the one site; it inherits from Global

	Sources source.Set // sources of the site, in addition to the built-in ones

	Queue *outbox.Settings // zero fields have the defaults, but Wait is 5 s; nil for no queue
	Saved *saved.Options   // zero fields have the defaults; nil for no saved keys

	Storage certmagic.Storage // storage of saved keys; default: a temporary folder
	Spaces  *saved.Spaces     // shared with other gateways; default: new ones in Storage
	Process *Process          // default: a new one
	Log     *zap.Logger       // default: none
	Tracer  trace.TracerProvider

	Shared *bolt.Store                   // store of the queue that other gateways use, too; default: its own
	Wrap   func(queue.Store) queue.Store // replaces the store of its own that the queue would use

	// Emit receives the events of the gateway. Default: nobody does.
	Emit func(name string, data map[string]any)
}

// Gateway is a running gateway of a test.
type Gateway struct {
	*httpapi.API // API of its one site

	Gateway gateway.Gateway
	Process *Process

	t      testing.TB
	stop   func()
	shared *bolt.Store
	index  atomic.Pointer[site.Index]
}

// SetSiteID gives the site another ID, as a new address does.
func (g *Gateway) SetSiteID(id string) {
	s := g.Gateway.Conf.Sites[0]
	g.index.Store(&site.Index{IDs: map[*site.Site]string{s: id}, ByID: map[string][]*site.Site{id: {s}}})
}

// Process has what the gateways of one process share: connections and counters. Gateways that
// replace one another use the same Process.
type Process struct {
	*dispatch.Dispatcher
	Registry *prometheus.Registry // has its metrics

	newest atomic.Pointer[gateway.Gateway]
	queues openQueues
}

// NewProcess returns a process that ends with the test.
func NewProcess(t testing.TB) *Process {
	t.Helper()
	p := &Process{Registry: prometheus.NewRegistry()}
	p.Dispatcher = gateway.New(version.Agent, p.newest.Load, func(ctx context.Context) *metrics.QueueState {
		if g := p.newest.Load(); g != nil && g.Rooms != nil {
			return g.Rooms.State(ctx)
		}
		return nil
	})
	if err := p.Metrics.Register(p.Registry); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gateway.CloseDispatcher(p.Dispatcher) })
	return p
}

// New starts a gateway. It stops at the end of the test.
func New(t testing.TB, o Options) *Gateway {
	t.Helper()
	g, err := Start(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Start is [New] for options that may be wrong.
func Start(t testing.TB, o Options) (*Gateway, error) {
	t.Helper()
	if o.Process == nil {
		o.Process = NewProcess(t)
	}
	log := cmp.Or(o.Log, zap.NewNop())
	g := &Gateway{Process: o.Process, t: t, shared: o.Shared}
	if err := g.setEngine(&o, log); err != nil {
		return nil, err
	}
	s, keys, err := g.addSite(&o, log)
	if err != nil {
		return nil, err
	}
	if err := g.open(&o); err != nil {
		return nil, err
	}
	g.API = httpapi.New(httpapi.Options{
		Resolved: s, Sources: o.Sources, App: &g.Gateway, Saved: keys, ParseDuration: ParseDuration, Log: log,
	}, console.New)
	close(g.Gateway.Started)
	stopped := false
	g.stop = func() {
		if !stopped {
			stopped = true
			g.close()
		}
	}
	t.Cleanup(g.stop)
	return g, nil
}

// setEngine sets what deliveries need, and the site that all others inherit from.
func (g *Gateway) setEngine(o *Options, log *zap.Logger) (err error) {
	e := &g.Gateway.Conf
	e.Shared, e.Log, g.Gateway.Started = o.Process.Dispatcher, log, make(chan struct{})
	e.Tracers = func() trace.TracerProvider { return o.Tracer }
	e.Emit = func(name string, data func() map[string]any) {
		if o.Emit != nil {
			o.Emit(name, data())
		}
	}
	e.Subscribed = func(string) bool { return o.Emit != nil }
	if o.Queue != nil {
		s := *o.Queue
		s.NoSync = true
		if s.Path == "" && s.DSN == "" {
			s.Path = g.t.TempDir()
		}
		s.Name = cmp.Or(s.Name, s.Path, s.DSN)
		s.MaxAge, s.MaxSize = cmp.Or(s.MaxAge, queue.DefaultMaxAge), cmp.Or(s.MaxSize, queue.DefaultMaxSize)
		s.Wait, s.Keep = cmp.Or(s.Wait, 5*time.Second), cmp.Or(s.Keep, queue.DefaultKeep)
		e.QueueSettings = &s
	}
	o.Global.Parse, o.Global.Log = g.parse, log
	if e.Global, err = site.New(o.Global); err == nil {
		g.addDevices(e.Global)
	}
	return err
}

// parse returns a destination that the process shares.
func (g *Gateway) parse(u site.URL) (*notifier.Destination, error) {
	return g.Process.Sender.ParseWithFiles(u.URL, nil, notifier.Files{Dir: cmp.Or(u.Dir, ".")})
}

// addDevices lets devices subscribe to the keys of a site.
func (g *Gateway) addDevices(s *site.Site) {
	if s.Push == nil {
		return
	}
	s.Devices = device.NewKeyDevices(device.KeyOptions{
		Started:  g.Gateway.Started,
		Registry: func() *device.Registry { return g.registry() },
		Site:     func() string { return g.Gateway.Conf.SiteID(s) },
		Settings: s,
	}).Receivers()
}

func (g *Gateway) registry() *device.Registry {
	if g.Gateway.Rooms == nil {
		return nil
	}
	return g.Gateway.Rooms.Devices
}

// addSite adds the site, and returns it with its saved keys, which are nil for none.
func (g *Gateway) addSite(o *Options, log *zap.Logger) (s *site.Site, keys *saved.Keys, err error) {
	e := &g.Gateway.Conf
	o.Site.Base, o.Site.Parse, o.Site.Log = e.Global, g.parse, log
	if s, err = site.New(o.Site); err != nil {
		return nil, nil, err
	}
	g.addDevices(s)
	e.Sites = []*site.Site{s}
	g.SetSiteID(SiteID)
	e.SiteIndex = g.index.Load
	if o.Saved == nil {
		return s, nil, nil
	}
	if o.Spaces == nil {
		o.Spaces = &saved.Spaces{Storage: o.Storage}
		if o.Storage == nil {
			o.Spaces.Storage = &certmagic.FileStorage{Path: g.t.TempDir()}
		}
	}
	o.Spaces.Emit, o.Spaces.Forget = e.Emit, g.Gateway.ForgetKey
	c := *o.Saved
	c.Refresh, c.MaxKeys = cmp.Or(c.Refresh, 5*time.Second), cmp.Or(c.MaxKeys, 1000)
	c.MaxSize, c.MaxURLs = cmp.Or(c.MaxSize, 512<<10), cmp.Or(c.MaxURLs, 100)
	keys, err = saved.New(c, s, o.Spaces, saved.ConfigsOwner{ID: g}, true, o.Process.Sender, log)
	if err == nil {
		s.Saved = keys.Finder()
	}
	return s, keys, err
}

// open opens the queue, if there is one.
func (g *Gateway) open(o *Options) error {
	e := &g.Gateway.Conf
	if e.QueueSettings == nil {
		g.Process.newest.Store(&g.Gateway)
		return nil
	}
	rooms, opened, err := g.Process.queues.use(e.QueueSettings.Name, func() (*gateway.Rooms, error) { return o.openQueue(e) })
	if err != nil {
		return err
	}
	g.Gateway.Rooms = rooms
	g.Process.newest.Store(&g.Gateway)
	rooms.Begin(e, opened)
	return nil
}

// openQueue opens the queue of a gateway.
func (o *Options) openQueue(conf *outbox.Configuration) (*gateway.Rooms, error) {
	if o.Shared != nil {
		return gateway.NewRooms(conf, keptStore{o.Shared}, nil), nil
	}
	if o.Wrap == nil {
		return gateway.OpenQueue(conf)
	}
	s := conf.QueueSettings
	store, err := bolt.Open(bolt.Options{Path: s.Path, Secret: s.Secret, NoSync: true})
	if err != nil {
		return nil, err
	}
	return gateway.NewRooms(conf, o.Wrap(store), store), nil
}

// Rooms returns the rooms of the open queue.
func (g *Gateway) Rooms() *gateway.Rooms { return g.Gateway.Rooms }

// Stop stops the gateway. It can be called again. Waiting messages stay in the store.
func (g *Gateway) Stop() { g.stop() }

func (g *Gateway) close() {
	g.Streams.Stop()
	g.Closing.Stop()
	g.Process.Background.Wait(dispatch.StopTimeout)
	g.Saved.Close()
	if g.Gateway.Rooms != nil {
		if err := g.Process.queues.leave(g.Gateway.Conf.QueueSettings.Name); err != nil {
			g.t.Error(err)
		}
	}
}

// Key returns the options of a key with URLs, each with its tags after it: "json://localhost 1:ops".
func Key(name string, urls ...string) site.KeyOptions {
	return site.KeyOptions{Name: name, URLs: URLs(urls...)}
}

// Queued returns the options of a gateway whose queue is in a folder, with keys of all sites.
func Queued(dir string, keys ...site.KeyOptions) Options {
	return Options{Global: site.Options{Keys: keys}, Queue: &outbox.Settings{Path: dir}}
}

// URLs returns notification URLs, each with its tags after it.
func URLs(urls ...string) (out []site.URL) {
	for _, text := range urls {
		words := strings.Fields(text)
		out = append(out, site.URL{URL: words[0], Tags: words[1:]})
	}
	return out
}

// Loopback is the policy under which clients may send to this machine, where the
// destinations of tests are.
func Loopback() *egress.Policy {
	p, err := egress.NewPolicy([]string{"127.0.0.0/8"}, nil)
	if err != nil {
		panic(err) // text is a constant
	}
	return p
}

// Everybody returns managers that include everybody.
func Everybody() *site.Managers { return &site.Managers{Open: true} }

// ParseDuration parses a duration, which may be in days, such as 7d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

// usual is the environment of a test's requests unless [Gateway.DoIn] sets another.
var usual = environment.Environment{
	User: func(r *http.Request) string {
		user, _ := r.Context().Value(userKey{}).(string)
		return user
	},
	ClientIP: func(r *http.Request) string {
		a, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return ""
		}
		return a.Addr().String()
	},
	Original: func(r *http.Request) *url.URL { return r.URL },
}

type userKey struct{}

// As returns r as a request of a user whom the server has authenticated.
func As(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}
