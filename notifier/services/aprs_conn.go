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
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// aprsConn is a connection to a server of APRS-IS.
type aprsConn struct{ *wire.Conn }

// signIn sends the login and waits up to timeout for the answer, which is one of
// the comment lines that begin with # (www.aprs-is.net/Connecting.aspx).
func (c aprsConn) signIn(ctx context.Context, timeout time.Duration, user, passcode string) error {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
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
			return notifier.Denied(errors.New("APRS-IS refused the passcode; it must be the passcode of the call sign"))
		}
		return nil
	}
	if err := lines.Err(); err != nil {
		return errs.ContextError(ctx, fmt.Errorf("signing in to APRS-IS: %w", err))
	}
	return errors.New("APRS-IS closed the connection before it answered the login")
}

// aprsDevice identifies the program on the network. APZ is the prefix of
// programs without a registered name (APRS101, chapter 4).
const aprsDevice = "APZCDN"

// send sends a message to a station (APRS101, chapter 14). It asks for no
// acknowledgement.
func (c aprsConn) send(from, to, text string) error {
	if _, err := fmt.Fprintf(c, "%s>%s,TCPIP*::%-9s:%s\r\n", from, aprsDevice, to, text); err != nil {
		return fmt.Errorf("sending to APRS-IS: %w", err)
	}
	return nil
}

// aprsCloseTimeout is the time that finish waits for the server to close the
// connection. The server closes it when it has read everything.
const aprsCloseTimeout = 2 * time.Second

// finish closes the sending side and reads until the server closes its side. If
// the connection were closed with unread data, the system could discard what was
// sent.
func (c aprsConn) finish() error {
	half, ok := c.Conn.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return fmt.Errorf("sending to APRS-IS: %w", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(aprsCloseTimeout)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	if timeout, ok := errors.AsType[net.Error](err); err != nil && !(ok && timeout.Timeout()) {
		return fmt.Errorf("the connection to APRS-IS failed: %w", err)
	}
	return nil
}
