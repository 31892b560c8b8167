// Package smtp takes messages as mails: it has the settings of the mail server, its listeners and
// its certificate, and sends each mail as a message. Package smtpd speaks the protocol.
package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/refusal"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Server receives mails for the keys of a gateway and sends them.
type Server struct {
	gateway  *gateway.Gateway
	settings *settings
	at       *block.Info   // where the setting smtp stands
	server   *smtpd.Server // nil before Start
	log      *zap.Logger
	refusals refusal.Log
}

// New returns a server that sends with a gateway. It reads the files that the settings name,
// and loads Caddy's tls app if that manages the certificate. Errors have the position of
// the setting smtp in at.
func New(ctx caddy.Context, c *Config, gateway *gateway.Gateway, at *block.Info) (*Server, error) {
	settings, err := c.resolve()
	if err != nil {
		return nil, at.Locate("smtp", errs.Prefix("smtp", err))
	}
	if settings.domain != "" {
		if _, err := ctx.App("tls"); err != nil { // so that Caddy starts it
			return nil, fmt.Errorf("loading the tls app: %w", err)
		}
	}
	return &Server{gateway: gateway, settings: settings, at: at, log: gateway.Conf.Log.Named("smtp")}, nil
}

// Start opens the listeners and serves them. passwords remembers logins over reloads.
func (g *Server) Start(ctx caddy.Context, passwords *smtpd.Passwords) error {
	if err := g.start(ctx, passwords); err != nil {
		return g.at.Locate("smtp", errs.Prefix("smtp", err))
	}
	return nil
}

func (g *Server) start(ctx caddy.Context, passwords *smtpd.Passwords) error {
	config := g.settings.server
	config.Log, config.Delivery = g.log, g.gateway.Conf.Global.Limits.Timeout
	config.Passwords = passwords
	var err error
	if config.TLS, err = g.tlsConfig(ctx); err != nil {
		return errs.Prefix("tls", err)
	}
	plain, err := listen(ctx, g.settings.listen)
	if err != nil {
		return err
	}
	implicit, err := listen(ctx, g.settings.implicitTLS)
	if err != nil {
		closeAll(plain)
		return err
	}
	g.server = smtpd.New(config, smtpd.Gateway{Check: g.check, Deliver: g.receive, Refused: g.refused})
	for i, l := range slices.Concat(plain, implicit) {
		go g.server.Serve(l, i >= len(plain))
		g.log.Info("mail server is listening", zap.String("address", l.Addr().String()))
	}
	g.warnLocalOnly(slices.Concat(plain, implicit))
	return nil
}

// keepAlive is the interval of TCP keep-alive probes. Caddy's HTTP servers use
// the same one.
const keepAlive = 15 * time.Second

// listen opens listeners for all addresses, or none.
func listen(ctx context.Context, addresses []caddy.NetworkAddress) (listeners []net.Listener, err error) {
	for _, a := range addresses {
		for offset := range max(a.PortRangeSize(), 1) {
			l, err := a.Listen(ctx, offset, net.ListenConfig{KeepAlive: keepAlive})
			if err != nil {
				closeAll(listeners)
				return nil, err
			}
			listener, ok := l.(net.Listener)
			if !ok {
				closeAll(listeners)
				return nil, errAddress
			}
			listeners = append(listeners, listener)
		}
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // nothing was received
	}
}

// warnLocalOnly warns if the server listens for other machines, but neither auth nor
// trusted_clients lets them send mails.
func (g *Server) warnLocalOnly(listeners []net.Listener) {
	outside := slices.ContainsFunc(listeners, func(l net.Listener) bool {
		a, ok := l.Addr().(*net.TCPAddr)
		return ok && !a.IP.IsLoopback()
	})
	if outside && len(g.settings.server.Accounts)+len(g.settings.server.Trusted) == 0 {
		g.log.Warn(g.at.At("smtp") + "only clients on this machine can send mails, " +
			"because there are no accounts; add tls and auth, or trusted_clients, or listen on localhost only")
	}
}

// tlsConfig returns the TLS configuration, or nil if tls is not set.
func (g *Server) tlsConfig(ctx caddy.Context) (*tls.Config, error) {
	domain := g.settings.domain
	switch {
	case g.settings.certificate != nil:
		return &tls.Config{Certificates: []tls.Certificate{*g.settings.certificate}, MinVersion: tls.VersionTLS12}, nil
	case domain == "":
		return nil, nil
	}
	// Mail clients often send no server name in TLS, or another name of the server.
	policies := caddytls.ConnectionPolicies{{DefaultSNI: domain, FallbackSNI: domain}}
	if err := policies.Provision(ctx); err != nil {
		return nil, err
	}
	app, err := ctx.App("tls")
	if err != nil {
		return nil, err
	}
	if err := app.(*caddytls.TLS).Manage(map[string]struct{}{domain: {}}); err != nil {
		return nil, err
	}
	config := policies[0].TLSConfig
	config.NextProtos = nil // they name HTTP versions
	return config, nil
}

// Stop stops the server. replaced means that another configuration replaces this one, and
// before are the servers of configurations that were replaced earlier.
func (g *Server) Stop(before *smtpd.Replaced, replaced bool) {
	if g.server != nil {
		g.server.Stop(before, replaced)
	}
}

// check returns an error if no mail can be sent to a recipient.
func (g *Server) check(r smtpd.Recipient) error {
	_, _, err := g.find(r)
	switch {
	case errors.Is(err, site.ErrNoKey):
		return smtpd.ErrNoKey
	case errors.Is(err, site.ErrMailUnnamed):
		return smtpd.ErrUnnamed
	}
	return err
}

// find returns the key of a recipient and the key's targets that have the
// recipient's tags. The error is an [*api.Error] if it is for the client.
func (g *Server) find(r smtpd.Recipient) (*site.Key, []notifier.Target, error) {
	if err := site.CheckKeyName(r.Key); err != nil {
		return nil, nil, site.ErrNoKey
	}
	k, exists, err := g.gateway.Conf.Global.OpenKey(context.Background(), r.Key)
	switch {
	case err != nil:
		return nil, nil, err
	case len(k.Tokens) > 0 && !r.Named:
		return nil, nil, site.ErrMailUnnamed
	case !exists:
		return nil, nil, site.ErrNoKey
	}
	if err := k.CheckSource(site.SourceSMTP); err != nil {
		return nil, nil, err
	}
	targets, err := k.Choose(r.Tags)
	if err != nil {
		return nil, nil, api.Errorf(http.StatusFailedDependency, "%w", err)
	}
	return k, targets, nil
}

// refused records a refusal of the server.
func (g *Server) refused(r smtpd.Refusal) {
	if r.Mail {
		g.gateway.Conf.Shared.Metrics.NotSent(g.gateway.Conf.Global.ConfiguredName(r.Key), api.Outcome(r.Status))
	}
	f := history.Refusal{
		RefusalID: metrics.RefusalID{Source: site.SourceSMTP, Key: r.Key, Reason: httpapi.RefusalReason(r.Status, r.Err)},
		Time:      time.Now(), Status: r.Code, Text: r.Text,
	}
	if r.Client.IsValid() {
		f.Client = r.Client.String()
	}
	refusal.Record(g.gateway.Conf.Shared, f, &g.refusals, g.log)
}

// receive reads a mail and sends it to its recipients.
func (g *Server) receive(mail io.Reader, to []smtpd.Recipient) (*smtpd.Outcome, error) {
	app := &g.gateway.Conf
	e, err := app.Shared.InFlight.Enter(app.Global.Limits.InFlight)
	if err != nil {
		return nil, err
	}
	defer e.Leave()
	limits := app.Global.Limits.Limits
	limits.Memory = app.Shared.Memory.Allocation(app.Global.Limits.Memory, false)
	q, hops, err := api.ReadMail(mail, limits)
	if err != nil {
		return nil, err
	}
	return g.send(q, hops, to)
}

// recipientReport is the outcome of a mail for one recipient.
type recipientReport struct {
	report *notifier.Report
	id     string // ID of the message in the queue; "" without a queue
	err    error
}

// send sends a mail to all recipients at the same time. It closes q when the last
// delivery ends.
func (g *Server) send(q *api.Request, hops int, to []smtpd.Recipient) (*smtpd.Outcome, error) {
	var users atomic.Int32
	users.Store(1)
	release := func() {
		if users.Add(-1) == 0 {
			q.Close()
		}
	}
	defer release()
	m, err := q.Message()
	if err != nil {
		return nil, err
	}
	if m.Attachments, err = q.Attachments(context.Background(), g.gateway.Conf.Shared.Sender.Pool()); err != nil {
		return nil, err
	}
	m.Hops, m.Time = hops, time.Now()
	to = smtpd.Distinct(to, m.Type)
	var wg sync.WaitGroup
	reports := make([]recipientReport, len(to))
	for i, r := range to {
		users.Add(1)
		wg.Go(func() { reports[i] = g.sendTo(r, *m, q.Memory(), release) })
	}
	wg.Wait()
	o := new(smtpd.Outcome)
	var refused *api.Error
	for i := range reports {
		if err := reports[i].err; err == nil {
			o.Add(reports[i].report.Results, reports[i].id)
		} else if e, ok := api.ErrorOf(err); !ok {
			return nil, err
		} else if refused == nil || smtpd.IsTemporary(e) {
			refused = e
		}
	}
	// A temporary failure of one recipient makes the client send the mail again to
	// all of them.
	if refused != nil && (smtpd.IsTemporary(refused) || !o.Temporary()) {
		return nil, refused
	}
	return o, nil
}

// sendTo sends a mail to one recipient. It calls release when the last delivery
// ends.
func (g *Server) sendTo(r smtpd.Recipient, m notifier.Message, memory *memory.Allocation, release func()) recipientReport {
	m.Type = r.Type
	k, targets, err := g.find(r)
	if err != nil {
		release()
		return recipientReport{err: err}
	}
	m.Incident = m.Incident.For(k.Name, site.SourceSMTP)
	d := dispatch.NewDelivery(g.gateway.Conf.Global, site.SourceSMTP, "", &m, &message.Selection{Targets: targets}).ToKey(k)
	if err := d.To.Check(&m); err != nil {
		release()
		return recipientReport{err: err}
	}
	d.Memory, d.Resources = memory, dispatch.CloseFunc(release)
	report, id, err := g.gateway.Submit(context.Background(), k, d, outbox.Options{})
	if report == nil {
		release()
	}
	if err != nil {
		return recipientReport{err: outbox.QueueError(err)}
	}
	return recipientReport{report, id, nil}
}
