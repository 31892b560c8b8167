package caddyhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/emersion/go-smtp"
	"go.uber.org/zap"
)

// mailServer receives mails for the keys of an app.
type mailServer struct {
	app       *App
	settings  *mailSettings
	passwords *passwordChecker
	conns     mailConns
	smtp      *smtp.Server
	log       *zap.Logger
	refusals  refusalLog
}

// provisionSMTP prepares the mail server for Start, if smtp is set.
func (a *App) provisionSMTP(ctx caddy.Context) error {
	if a.SMTP == nil {
		return nil
	}
	settings, err := a.SMTP.resolve()
	if err != nil {
		return a.Caddyfile.locate("smtp", prefixError("smtp", err))
	}
	if settings.domain != "" {
		if _, err := ctx.App("tls"); err != nil { // so that Caddy starts it
			return fmt.Errorf("loading the tls app: %w", err)
		}
	}
	if a.resolved.saved, err = newSavedKeys(a.resolved, a.saved, a.shared.sender, a.log); err != nil {
		return a.Caddyfile.locate("configs", prefixError("configs", err))
	}
	s := &mailServer{
		app: a, settings: settings, passwords: newPasswordChecker(), log: a.log.Named("smtp"),
		conns: mailConns{max: settings.maxConnections, open: map[*mailConn]bool{}, byAddress: map[netip.Addr]int{}},
	}
	s.smtp = smtp.NewServer(smtp.BackendFunc(s.newSession))
	s.smtp.Domain = settings.hostname
	s.smtp.MaxMessageBytes, s.smtp.MaxRecipients = settings.maxSize, settings.maxRecipients
	s.smtp.ReadTimeout, s.smtp.WriteTimeout = settings.timeout, min(settings.timeout, mailWriteTimeout)
	s.smtp.MaxLineLength = maxMailLine
	s.smtp.EnableSMTPUTF8 = true
	s.smtp.ErrorLog = mailErrorLog{s.log}
	a.mail = s
	return nil
}

const (
	mailWriteTimeout = 30 * time.Second // for an answer
	maxMailLine      = 64 << 10         // bytes of a command or a line of a mail; many programs exceed the 1000 bytes of RFC 5321
)

// startSMTP starts the mail server, if smtp is set.
func (a *App) startSMTP() error {
	if a.mail == nil {
		return nil
	}
	if err := a.mail.start(a.emitter.ctx); err != nil {
		return a.Caddyfile.locate("smtp", prefixError("smtp", err))
	}
	return nil
}

// start opens the listeners and serves them.
func (s *mailServer) start(ctx caddy.Context) error {
	var err error
	if s.smtp.TLSConfig, err = s.tlsConfig(ctx); err != nil {
		return prefixError("tls", err)
	}
	var listeners []net.Listener
	listen := func(addresses []caddy.NetworkAddress, config *tls.Config) error {
		for _, a := range addresses {
			for offset := range max(a.PortRangeSize(), 1) {
				l, err := a.Listen(ctx, offset, net.ListenConfig{KeepAlive: mailKeepAlive})
				if err != nil {
					return err
				}
				listener, ok := l.(net.Listener)
				if !ok {
					return errSMTPAddress
				}
				listeners = append(listeners, &mailListener{listener, s, config})
			}
		}
		return nil
	}
	if err := errors.Join(listen(s.settings.listen, nil), listen(s.settings.implicitTLS, s.smtp.TLSConfig)); err != nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		return err
	}
	for _, l := range listeners {
		go s.serve(l)
		s.log.Info("mail server is listening", zap.String("address", l.Addr().String()))
	}
	s.warnLocalOnly(listeners)
	return nil
}

// mailKeepAlive is the interval of TCP keep-alive probes. Caddy's HTTP servers use
// the same one.
const mailKeepAlive = 15 * time.Second

func (s *mailServer) serve(l net.Listener) {
	if err := s.smtp.Serve(l); err != nil {
		s.log.Error("the mail server no longer takes connections", zap.String("address", l.Addr().String()), zap.Error(err))
	}
}

// warnLocalOnly warns if the server listens for other machines, but neither auth nor
// trusted_clients lets them send mails.
func (s *mailServer) warnLocalOnly(listeners []net.Listener) {
	outside := slices.ContainsFunc(listeners, func(l net.Listener) bool {
		a, ok := l.Addr().(*net.TCPAddr)
		return ok && !a.IP.IsLoopback()
	})
	if outside && len(s.settings.accounts)+len(s.settings.ranges) == 0 {
		s.log.Warn(s.app.Caddyfile.at("smtp") + "only clients on this machine can send mails, because there are no accounts; add tls and auth, or trusted_clients, or listen on localhost only")
	}
}

// tlsConfig returns the TLS configuration, or nil if tls is not set.
func (s *mailServer) tlsConfig(ctx caddy.Context) (*tls.Config, error) {
	domain := s.settings.domain
	switch {
	case s.settings.certificate != nil:
		return &tls.Config{Certificates: []tls.Certificate{*s.settings.certificate}, MinVersion: tls.VersionTLS12}, nil
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

// How long a server that stops goes on reading.
const (
	mailReloadTime = 20 * time.Second // commands after a reload
	mailExitTime   = stopTimeout      // mails when Caddy stops
)

// stop closes the listeners. If another configuration replaces this one, open
// connections accept commands for mailReloadTime, and a mail under way is finished.
// Otherwise stop returns when the mails under way are answered, also those of
// configurations that were replaced before, or after a timeout.
func (s *mailServer) stop(replaced bool) {
	servers := s.app.shared.mail.stopping(s, replaced)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if replaced {
		s.endAt(time.Now().Add(mailReloadTime), false)
		cancel() // Shutdown closes the listeners and does not wait for connections
	} else {
		for _, server := range servers {
			server.endAt(time.Now(), false)
		}
		timer := time.AfterFunc(mailExitTime, func() {
			for _, server := range servers {
				server.endAt(time.Now(), true)
			}
		})
		defer timer.Stop()
		limit := time.AfterFunc(mailExitTime+s.app.resolved.timeout, cancel)
		defer limit.Stop()
	}
	err := s.smtp.Shutdown(ctx)
	if replaced {
		return
	}
	for _, server := range servers {
		err = errors.Join(err, server.conns.wait(ctx))
	}
	if err != nil {
		s.log.Error("mails were not answered before Caddy stopped", zap.Error(err))
	}
}

// endAt sets the deadline t for commands on all open connections and, if all is set,
// for mails, too.
func (s *mailServer) endAt(t time.Time, all bool) {
	for _, c := range s.conns.all() {
		c.endAt(t, all)
	}
}

// replacedMailServers are the mail servers of replaced configurations that still have
// connections.
type replacedMailServers struct {
	mu      sync.Mutex
	servers []*mailServer
}

// stopping returns s, which stops, and the replaced servers that still have
// connections. If s is replaced, stopping adds it to them.
func (r *replacedMailServers) stopping(s *mailServer, replaced bool) []*mailServer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = slices.DeleteFunc(r.servers, func(s *mailServer) bool { return len(s.conns.all()) == 0 })
	all := append(slices.Clone(r.servers), s)
	if replaced {
		r.servers = all
	}
	return all
}

// mailListener accepts connections of mail clients.
type mailListener struct {
	net.Listener
	server *mailServer
	tls    *tls.Config // nil if TLS does not begin at once
}

// Accept implements net.Listener.
func (l *mailListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &mailConn{Conn: conn}
		c.client, c.trusted = l.server.settings.client(conn.RemoteAddr())
		if !l.server.conns.add(c) {
			l.reject(c)
			continue
		}
		if l.tls != nil {
			return tls.Server(c, l.tls), nil
		}
		return c, nil
	}
}

// reject closes a connection that exceeds a limit of mailConns.
func (l *mailListener) reject(c *mailConn) {
	l.server.refuse(c.client, "", errMailBusy, refusalOverloaded)
	if l.tls == nil {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(c.Conn, "421 4.3.2 %s\r\n", errMailBusy.Message) // the client may have gone
	}
	_ = c.Conn.Close()
}

// client returns the address of a client and reports whether the client needs no
// account.
func (s *mailSettings) client(a net.Addr) (client netip.Addr, trusted bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, s.local // a Unix socket
	}
	client = tcp.AddrPort().Addr().Unmap().WithZone("")
	return client, s.local && client.IsLoopback() || slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// mailErrorLog logs the errors of package smtp. A panic has the level error. Other
// errors have the level debug, because they are about clients that closed the
// connection or failed to begin TLS.
type mailErrorLog struct{ log *zap.Logger }

// Printf implements smtp.Logger.
func (l mailErrorLog) Printf(format string, v ...any) {
	if strings.HasPrefix(format, "panic") {
		l.log.Error(fmt.Sprintf(format, v...))
		return
	}
	l.log.Debug(fmt.Sprintf(format, v...))
}

// Println implements smtp.Logger.
func (l mailErrorLog) Println(v ...any) { l.log.Debug(fmt.Sprint(v...)) }
