package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// aprsConn is a connection to a server of APRS-IS.
type aprsConn struct{ *wire.Conn }

// signIn signs in (www.aprs-is.net/Connecting.aspx). Lines that begin with #
// are comments to a packet reader; the answer is one of them.
func (c aprsConn) signIn(ctx context.Context, patience time.Duration, user, passcode string) error {
	ctx, cancel := wire.WithAnswerTimeout(ctx, patience)
	defer cancel()
	defer wire.InterruptOnDone(ctx, c)()
	if _, err := fmt.Fprintf(c, "user %s pass %s vers caddy-notify 1\r\n", user, passcode); err != nil {
		return fmt.Errorf("signing in to APRS-IS: %w", err)
	}
	lines := bufio.NewScanner(io.LimitReader(c, 64<<10))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[0] != "#" || f[1] != "logresp" {
			continue
		}
		if !strings.EqualFold(f[2], user) || strings.TrimRight(f[3], ",") != "verified" {
			return errors.New("APRS-IS did not accept the passcode; it must be the one that belongs to the call sign")
		}
		return nil
	}
	if err := lines.Err(); err != nil {
		return errs.ContextError(ctx, fmt.Errorf("signing in to APRS-IS: %w", err))
	}
	return errors.New("APRS-IS closed the connection instead of signing in")
}

// aprsDevice tells programs on the network apart. Those that have no
// registered name begin with APZ (APRS101, chapter 4).
const aprsDevice = "APZCDN"

// send sends a message to a station (APRS101, chapter 14), which need not
// acknowledge it.
func (c aprsConn) send(from, to, text string) error {
	if _, err := fmt.Fprintf(c, "%s>%s,TCPIP*::%-9s:%s\r\n", from, aprsDevice, to, text); err != nil {
		return fmt.Errorf("sending to APRS-IS: %w", err)
	}
	return nil
}

// aprsGoodbye is how long the server has to close the connection. It does so
// when it has read everything.
const aprsGoodbye = 2 * time.Second

// finish closes our side and reads what the server may still say: closing
// before that could make the system discard what is on its way.
func (c aprsConn) finish() error {
	half, ok := c.Conn.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return fmt.Errorf("sending to APRS-IS: %w", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(aprsGoodbye)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	if timeout, ok := errors.AsType[net.Error](err); err != nil && !(ok && timeout.Timeout()) {
		return fmt.Errorf("APRS-IS broke the connection: %w", err)
	}
	return nil
}
