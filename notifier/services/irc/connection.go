package irc

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// connection is a connection to a server that has accepted our nickname. It is
// read only while we wait for an answer. That is often enough to answer the
// server's pings.
type connection struct {
	conn        *wire.Conn
	r           *bufio.Reader
	nick        string
	quitMessage string
	joined      map[string]bool // channels, in lower case
	pings       int
}

// open connects and signs in.
func (i *service) open(ctx context.Context, c *notifier.Client, id *notifier.Identity) (*connection, error) {
	var config *tls.Config
	if i.Secure {
		config = wire.TLSConfig(c, i.Host)
	}
	raw, err := wire.Dial(ctx, c, i.Host, i.Port, config)
	if err != nil {
		return nil, err
	}
	conn := &connection{conn: raw, r: bufio.NewReader(raw), quitMessage: oneLine(id.Description), joined: map[string]bool{}}
	ctx, cancel := wire.WithAnswerTimeout(ctx, c.AnswerTimeout())
	defer cancel()
	defer wire.InterruptOnDone(ctx, raw)()
	if err = i.register(conn, id); err == nil {
		err = i.identify(conn)
	}
	if err != nil {
		_ = raw.Close()
		return nil, errs.ContextError(ctx, err)
	}
	return conn, nil
}

// join joins a channel unless we are in it.
func (conn *connection) join(ctx context.Context, c *notifier.Client, channel, key string) error {
	if conn.joined[strings.ToLower(channel)] {
		return nil
	}
	if err := conn.exchange(ctx, c.AnswerTimeout(), "to let us into the channel", strings.TrimSpace("JOIN "+channel+" "+key)); err != nil {
		return err
	}
	conn.joined[strings.ToLower(channel)] = true
	return nil
}

// exchange writes lines and returns when the server has handled them. It
// appends a PING, which the server answers last because it handles lines in
// order. An error reply becomes an error with the name of what the server
// refused.
func (conn *connection) exchange(ctx context.Context, timeout time.Duration, what string, lines ...string) error {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
	defer cancel()
	defer wire.InterruptOnDone(ctx, conn.conn)()
	conn.pings++
	token := fmt.Sprintf("caddy%d", conn.pings)
	if err := conn.write(append(lines, "PING :"+token)...); err != nil {
		return wire.Broken(errs.ContextError(ctx, err))
	}
	var refused error
	for {
		line, err := conn.read()
		switch {
		case err != nil:
			return wire.Broken(errs.ContextError(ctx, err))
		case line.command == "PONG" && line.last() == token:
			return refused
		case line.command == "KICK" && len(line.params) > 1 && strings.EqualFold(line.params[1], conn.nick):
			delete(conn.joined, strings.ToLower(line.params[0]))
		case line.isError() && refused == nil:
			refused = fmt.Errorf("the IRC server refused %s: %s", what, line.reason())
			if line.command == badChannelKey {
				refused = notifier.Denied(refused)
			}
			if len(line.params) > 1 { // we may have left the channel
				delete(conn.joined, strings.ToLower(line.params[1]))
			}
		}
	}
}

// badChannelKey is the reply to a wrong password of a channel (RFC 2812, section 5.2).
const badChannelKey = "475"

func (conn *connection) write(lines ...string) error {
	_, err := io.WriteString(conn.conn, strings.Join(lines, "\r\n")+"\r\n")
	return err
}

// read reads the next line that is not a PING. It answers those.
func (conn *connection) read() (serverLine, error) {
	for {
		text, err := conn.r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return serverLine{}, errors.New("the IRC server closed the connection without a reason")
		}
		if err != nil {
			return serverLine{}, err
		}
		switch line := parseLine(text); line.command {
		case "PING":
			if err := conn.write("PONG :" + line.last()); err != nil {
				return serverLine{}, err
			}
		case "ERROR":
			return serverLine{}, &closedError{line.last()}
		default:
			return line, nil
		}
	}
}

// closedError is returned when the server closes the connection with a reason.
type closedError struct{ reason string }

func (e *closedError) Error() string { return "the IRC server closed the connection: " + e.reason }

// Ping returns when the server has answered a PING.
func (conn *connection) Ping(ctx context.Context) error {
	conn.conn.ResetReadLimit()
	return conn.exchange(ctx, 0, "a ping")
}

// Close quits and closes the connection.
func (conn *connection) Close() error {
	_ = conn.conn.SetDeadline(time.Now().Add(time.Second))
	_ = conn.write("QUIT :" + conn.quitMessage)
	return conn.conn.Close()
}
