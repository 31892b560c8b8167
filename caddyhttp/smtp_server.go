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

// mailServer takes mails for the keys of an app.
type mailServer struct {
	app       *App
	settings  *mailSettings
	passwords *passwords
	conns     mailConns
	smtp      *smtp.Server
	log       *zap.Logger
	refusals  refusalLog
}

// provisionSMTP makes the mail server ready for Start, if there is one.
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
		app: a, settings: settings, passwords: newPasswords(), log: a.log.Named("smtp"),
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
	mailWriteTimeout = 30 * time.Second // for a response
	maxMailLine      = 64 << 10         // of a command or a line of a mail; many programs do not keep to the 1000 bytes of RFC 5321
)

// startSMTP listens and takes mails.
func (a *App) startSMTP() error {
	if a.mail == nil {
		return nil
	}
	if err := a.mail.start(a.emitter.ctx); err != nil {
		return a.Caddyfile.locate("smtp", prefixError("smtp", err))
	}
	return nil
}

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
	s.warnUseless(listeners)
	return nil
}

// mailKeepAlive is the interval of TCP's keep-alive probes, as of Caddy's HTTP
// servers.
const mailKeepAlive = 15 * time.Second

func (s *mailServer) serve(l net.Listener) {
	if err := s.smtp.Serve(l); err != nil {
		s.log.Error("the mail server no longer takes connections", zap.String("address", l.Addr().String()), zap.Error(err))
	}
}

// warnUseless warns about listening for clients that can have no account.
func (s *mailServer) warnUseless(listeners []net.Listener) {
	outside := slices.ContainsFunc(listeners, func(l net.Listener) bool {
		a, ok := l.Addr().(*net.TCPAddr)
		return ok && !a.IP.IsLoopback()
	})
	if outside && len(s.settings.accounts)+len(s.settings.ranges) == 0 {
		s.log.Warn(s.app.Caddyfile.at("smtp") + "only clients on this machine can send mails, because there are no accounts; add tls and auth, or trusted_clients, or listen on localhost only")
	}
}

// tlsConfig returns the settings for TLS, or nil without a certificate.
func (s *mailServer) tlsConfig(ctx caddy.Context) (*tls.Config, error) {
	domain := s.settings.domain
	switch {
	case s.settings.certificate != nil:
		return &tls.Config{Certificates: []tls.Certificate{*s.settings.certificate}, MinVersion: tls.VersionTLS12}, nil
	case domain == "":
		return nil, nil
	}
	// Mail clients often name no host in TLS, or another name of the server.
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
	config.NextProtos = nil // those of HTTP
	return config, nil
}

// How long a server that stops reads on.
const (
	mailReloadTime = 20 * time.Second // commands, after a reload
	mailExitTime   = stopTimeout      // mails, when Caddy stops
)

// stop ends listening. If another configuration replaces this one, connections go
// on for a while, so that a client that has begun need not repeat its mail.
// Otherwise stop returns when the mails under way are answered, also those of
// configurations that were replaced before.
func (s *mailServer) stop(replaced bool) {
	servers := s.app.shared.mail.leave(s, replaced)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if replaced {
		s.endAt(time.Now().Add(mailReloadTime), false)
		cancel() // do not wait for connections
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

// endAt ends the reading of commands at t. all includes mails.
func (s *mailServer) endAt(t time.Time, all bool) {
	for _, c := range s.conns.all() {
		c.endAt(t, all)
	}
}

// replacedMail are the mail servers of configurations that were replaced, while
// they have connections.
type replacedMail struct {
	mu      sync.Mutex
	servers []*mailServer
}

// leave returns the servers that have connections when s stops, with s. If s is
// replaced, it is one of them from now on.
func (r *replacedMail) leave(s *mailServer, replaced bool) []*mailServer {
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

// reject closes a connection that is one too many.
func (l *mailListener) reject(c *mailConn) {
	l.server.refuse(c.client, "", errMailBusy, refusalOverloaded)
	if l.tls == nil {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(c.Conn, "421 4.3.2 %s\r\n", errMailBusy.Message) // the client may be gone
	}
	_ = c.Conn.Close()
}

// client returns the address of a client, and whether it needs no account.
func (s *mailSettings) client(a net.Addr) (client netip.Addr, trusted bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, s.local // a socket of the file system
	}
	client = tcp.AddrPort().Addr().Unmap().WithZone("")
	return client, s.local && client.IsLoopback() || slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// mailErrorLog takes the messages of package smtp. Except for a panic, they are
// about clients that went away or failed at TLS.
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
