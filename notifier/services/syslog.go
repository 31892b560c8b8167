package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[syslog]()

// syslog writes to the log of the gateway's machine. Only URLs in the configuration
// may use it.
type syslog struct {
	entry  syslogEntry
	stderr bool
}

func (l *syslog) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Syslog", "https://www.rfc-editor.org/rfc/rfc5424"
	s.Setup = "A syslog daemon or journald must listen on /dev/log of the gateway's machine; URLs in requests cannot use this service."
	s.Groups(notifier.GroupServer)
	s.Words("journald", "systemd", "local log")
	s.URL("syslog://[{facility}]")
	l.entry.describe(s)
	s.Bool(&l.stderr, "logperror", false, "also write to the gateway's standard error")
}

func (l *syslog) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	if err := c.Local(); err != nil {
		return err
	}
	tag := syslogName(m.Identity.Name, 48)
	if l.entry.pid {
		tag += "[" + l.entry.process("") + "]"
	}
	entry := fmt.Sprintf("<%d>%s %s: %s", l.entry.priority(m.Type), m.Time.Format(time.Stamp), tag, syslogText(m))
	if err := l.write(ctx, c, entry); err != nil {
		return err
	}
	if l.stderr {
		if _, err := fmt.Fprintf(os.Stderr, "%s: %s\n", tag, syslogLine(m)); err != nil {
			return fmt.Errorf("writing to standard error: %w", err)
		}
	}
	return nil
}

// syslogSockets are the sockets of the syslog daemon on Linux, macOS and the BSDs.
var syslogSockets = []string{"/dev/log", "/var/run/syslog", "/var/run/log"}

// write sends an entry to the daemon as one datagram.
func (l *syslog) write(ctx context.Context, c *notifier.Client, entry string) error {
	for _, socket := range syslogSockets {
		conn, err := c.Dial(ctx, "unixgram", socket)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("connecting to the log of this machine: %w", err)
		}
		defer conn.Close()
		defer wire.InterruptOnDone(ctx, conn)()
		if _, err := conn.Write([]byte(entry)); err != nil {
			return fmt.Errorf("writing to the log of this machine: %w", errs.ContextError(ctx, err))
		}
		return nil
	}
	return errors.New("this machine has no syslog socket such as /dev/log; in a container, mount the host's")
}

// syslogLine returns the message in one line, so that no part of it looks like an
// entry of another program.
func syslogLine(m *notifier.Message) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, m.Text(": "))
}
