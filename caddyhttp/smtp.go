package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailGateway receives mails for the keys of an app.
type mailGateway struct {
	app      *App
	settings *mailSettings
	server   *smtpd.Server // nil before start
	log      *zap.Logger
	refusals httpapi.RefusalLog
}

// provisionSMTP prepares the mail server for Start, if smtp is set.
func (a *App) provisionSMTP(ctx caddy.Context) error {
	if a.SMTP == nil {
		return nil
	}
	settings, err := a.SMTP.resolve()
	if err != nil {
		return a.Caddyfile.Locate("smtp", site.PrefixError("smtp", err))
	}
	if settings.domain != "" {
		if _, err := ctx.App("tls"); err != nil { // so that Caddy starts it
			return fmt.Errorf("loading the tls app: %w", err)
		}
	}
	if a.saved, err = newSavedKeys(a.settled, a.spaces, a.configsOwner(a), false, a.shared.Sender, a.gateway.Log); err != nil {
		return a.Caddyfile.Locate("configs", site.PrefixError("configs", err))
	}
	a.gateway.Resolved.Saved = a.saved.Finder()
	a.mail = &mailGateway{app: a, settings: settings, log: a.gateway.Log.Named("smtp")}
	return nil
}

// startSMTP starts the mail server, if smtp is set.
func (a *App) startSMTP() error {
	if a.mail == nil {
		return nil
	}
	if err := a.mail.start(a.ctx); err != nil {
		return a.Caddyfile.Locate("smtp", site.PrefixError("smtp", err))
	}
	return nil
}

// start opens the listeners and serves them.
func (g *mailGateway) start(ctx caddy.Context) error {
	config := g.settings.server
	config.Log, config.Delivery = g.log, g.app.gateway.Resolved.Timeout
	config.Passwords = g.app.shared.Process.Passwords
	var err error
	if config.TLS, err = g.tlsConfig(ctx); err != nil {
		return site.PrefixError("tls", err)
	}
	plain, err := listenForMail(ctx, g.settings.listen)
	if err != nil {
		return err
	}
	implicit, err := listenForMail(ctx, g.settings.implicitTLS)
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

// mailKeepAlive is the interval of TCP keep-alive probes. Caddy's HTTP servers use
// the same one.
const mailKeepAlive = 15 * time.Second

// listenForMail opens listeners for all addresses, or none.
func listenForMail(ctx context.Context, addresses []caddy.NetworkAddress) (listeners []net.Listener, err error) {
	for _, a := range addresses {
		for offset := range max(a.PortRangeSize(), 1) {
			l, err := a.Listen(ctx, offset, net.ListenConfig{KeepAlive: mailKeepAlive})
			if err != nil {
				closeAll(listeners)
				return nil, err
			}
			listener, ok := l.(net.Listener)
			if !ok {
				closeAll(listeners)
				return nil, errSMTPAddress
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
func (g *mailGateway) warnLocalOnly(listeners []net.Listener) {
	outside := slices.ContainsFunc(listeners, func(l net.Listener) bool {
		a, ok := l.Addr().(*net.TCPAddr)
		return ok && !a.IP.IsLoopback()
	})
	if outside && len(g.settings.server.Accounts)+len(g.settings.server.Trusted) == 0 {
		g.log.Warn(g.app.Caddyfile.At("smtp") + "only clients on this machine can send mails, because there are no accounts; add tls and auth, or trusted_clients, or listen on localhost only")
	}
}

// tlsConfig returns the TLS configuration, or nil if tls is not set.
func (g *mailGateway) tlsConfig(ctx caddy.Context) (*tls.Config, error) {
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

// stop stops the server. replaced means that another configuration replaces this
// one.
func (g *mailGateway) stop(replaced bool) {
	if g.server != nil {
		g.server.Stop(&g.app.shared.Process.Mail, replaced)
	}
}

// check returns an error if no mail can be sent to a recipient.
func (g *mailGateway) check(r smtpd.Recipient) error {
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
func (g *mailGateway) find(r smtpd.Recipient) (*site.Key, []notifier.Target, error) {
	if err := site.CheckKeyName(r.Key); err != nil {
		return nil, nil, site.ErrNoKey
	}
	k, exists, err := g.app.gateway.Resolved.OpenKey(context.Background(), r.Key)
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
func (g *mailGateway) refused(r smtpd.Refusal) {
	if r.Mail {
		g.app.shared.Metrics.NotSent(g.app.gateway.Resolved.ConfiguredKey(r.Key), r.Status)
	}
	f := history.Refusal{
		RefusalID: metrics.RefusalID{Source: site.SourceSMTP, Key: r.Key, Reason: httpapi.RefusalReason(r.Status, r.Err)},
		Time:      time.Now(), Status: r.Code, Text: r.Text,
	}
	if r.Client.IsValid() {
		f.Client = r.Client.String()
	}
	httpapi.RecordRefusal(g.app.shared.Dispatcher, f, &g.refusals, g.log)
}

// receive reads a mail and sends it to its recipients.
func (g *mailGateway) receive(mail io.Reader, to []smtpd.Recipient) (*smtpd.Outcome, error) {
	app := g.app
	e, err := app.shared.InFlight.Enter(app.gateway.Resolved.InFlight)
	if err != nil {
		return nil, err
	}
	defer e.Leave()
	limits := app.gateway.Resolved.Limits
	limits.Memory = app.shared.Memory.Allocation(app.gateway.Resolved.Memory, false)
	q, hops, err := api.ReadMail(mail, limits)
	if err != nil {
		return nil, err
	}
	return g.send(q, hops, to)
}

// mailReport is the outcome of a mail for one recipient.
type mailReport struct {
	report *notifier.Report
	id     string // ID of the message in the queue; "" without a queue
	err    error
}

// send sends a mail to all recipients at the same time. It closes q when the last
// delivery ends.
func (g *mailGateway) send(q *api.Request, hops int, to []smtpd.Recipient) (*smtpd.Outcome, error) {
	var users atomic.Int32
	users.Store(1)
	release := func() {
		if users.Add(-1) == 0 {
			q.Close()
		}
	}
	defer release()
	message, err := q.Message()
	if err != nil {
		return nil, err
	}
	if message.Attachments, err = q.Attachments(context.Background(), g.app.shared.Sender.Pool()); err != nil {
		return nil, err
	}
	message.Hops, message.Time = hops, time.Now()
	var wg sync.WaitGroup
	reports := make([]mailReport, len(to))
	for i, r := range to {
		users.Add(1)
		wg.Go(func() { reports[i] = g.sendTo(r, *message, q.Memory(), release) })
	}
	wg.Wait()
	o := new(smtpd.Outcome)
	var refused *api.Error
	for i := range reports {
		if err := reports[i].err; err == nil {
			o.Add(reports[i].report.Results, reports[i].id)
		} else if e, ok := errors.AsType[*api.Error](err); !ok {
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
func (g *mailGateway) sendTo(r smtpd.Recipient, message notifier.Message, memory *notifier.Allocation, release func()) mailReport {
	// What is over is a success wherever it is sent. How bad a problem is, the address
	// knows better than the subject.
	if r.Type != "" && message.Type != notifier.Success {
		message.Type = r.Type
	}
	k, targets, err := g.find(r)
	if err != nil {
		release()
		return mailReport{err: err}
	}
	message.Incident = message.Incident.For(k.Name, site.SourceSMTP)
	d := dispatch.NewDelivery(g.app.gateway.Resolved, site.SourceSMTP, "", &message, &api.Selection{Targets: targets}).ToKey(k)
	if err := d.To.Check(&message); err != nil {
		release()
		return mailReport{err: err}
	}
	d.Memory, d.Release = memory, release
	report, id, err := g.app.gateway.SendOrQueue(context.Background(), k, d)
	return mailReport{report, id, err}
}
