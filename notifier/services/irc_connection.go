package services

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ircConn is a connection to a server that knows our name. It is read only
// while an answer is waited for, which is often enough for the server's pings.
type ircConn struct {
	limited *limitedConn
	r       *bufio.Reader
	nick    string
	goodbye string
	joined  map[string]bool
	pings   int
}

func (i *irc) open(ctx context.Context, c *notifier.Client, id *notifier.Identity) (*ircConn, error) {
	var config *tls.Config
	if i.Secure {
		config = tlsConfig(c, i.Host)
	}
	raw, err := dialServer(ctx, c, i.Host, i.Port, config)
	if err != nil {
		return nil, err
	}
	conn := &ircConn{limited: raw, r: bufio.NewReader(raw), goodbye: ircText(id.Description), joined: map[string]bool{}}
	ctx, cancel := patient(ctx, c.AnswerTimeout())
	defer cancel()
	defer during(ctx, raw)()
	if err = i.register(conn, id); err == nil {
		err = i.identify(conn)
	}
	if err != nil {
		_ = raw.Close()
		return nil, because(ctx, err)
	}
	return conn, nil
}

// join enters a channel, unless we are in it.
func (conn *ircConn) join(ctx context.Context, c *notifier.Client, channel, key string) error {
	if conn.joined[strings.ToLower(channel)] {
		return nil
	}
	if err := conn.exchange(ctx, c.AnswerTimeout(), "to let us into the channel", strings.TrimSpace("JOIN "+channel+" "+key)); err != nil {
		return err
	}
	conn.joined[strings.ToLower(channel)] = true
	return nil
}

// exchange writes a line and returns when the server has dealt with it: it
// does so in order, so a ping that follows is answered after that.
func (conn *ircConn) exchange(ctx context.Context, patience time.Duration, what string, lines ...string) error {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	defer during(ctx, conn.limited)()
	conn.pings++
	token := fmt.Sprintf("caddy%d", conn.pings)
	if err := conn.write(append(lines, "PING :"+token)...); err != nil {
		return broken(because(ctx, err))
	}
	var refusal error
	for {
		line, err := conn.read()
		switch {
		case err != nil:
			return broken(because(ctx, err))
		case line.command == "PONG" && line.last() == token:
			return refusal
		case line.command == "KICK" && len(line.params) > 1 && strings.EqualFold(line.params[1], conn.nick):
			delete(conn.joined, strings.ToLower(line.params[0]))
		case line.refuses() && refusal == nil:
			refusal = fmt.Errorf("the IRC server refused %s: %s", what, line.reason())
			if len(line.params) > 1 { // perhaps we are no longer in the channel
				delete(conn.joined, strings.ToLower(line.params[1]))
			}
		}
	}
}

func (conn *ircConn) write(lines ...string) error {
	_, err := io.WriteString(conn.limited, strings.Join(lines, "\r\n")+"\r\n")
	return err
}

// read reads a line, after it has answered the pings before it.
func (conn *ircConn) read() (ircLine, error) {
	for {
		text, err := conn.r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return ircLine{}, errors.New("the IRC server closed the connection without a reason")
		}
		if err != nil {
			return ircLine{}, err
		}
		switch line := parseIRC(text); line.command {
		case "PING":
			if err := conn.write("PONG :" + line.last()); err != nil {
				return ircLine{}, err
			}
		case "ERROR":
			return ircLine{}, errors.New("the IRC server closed the connection: " + line.last())
		default:
			return line, nil
		}
	}
}

func (conn *ircConn) ping(ctx context.Context) error {
	conn.limited.renew()
	return conn.exchange(ctx, 0, "a ping")
}

func (conn *ircConn) Close() error {
	_ = conn.limited.SetDeadline(time.Now().Add(time.Second))
	_ = conn.write("QUIT :" + conn.goodbye)
	return conn.limited.Close()
}
