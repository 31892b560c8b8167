package services

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[rsyslog]()

// rsyslog sends to a syslog server over UDP (RFC 5426). The server sends no answer,
// so a message to a server that is down is lost without an error.
type rsyslog struct {
	notifier.Server
	entry syslogEntry
}

func (l *rsyslog) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Remote Syslog", "https://www.rfc-editor.org/rfc/rfc5424"
	s.Setup = "A syslog server must accept messages over UDP at this host, by default on port 514."
	s.Groups(notifier.GroupServer)
	s.NoWeb()
	s.Words("log server", "rsyslogd", "syslog-ng", "graylog", "papertrail", "splunk log")
	s.URL("rsyslog://{host}[:{port}][/{facility}]")
	s.Server(&l.Server)
	l.entry.describe(s)
	s.Param("host").Example("logs.example.com")
}

func (l *rsyslog) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	port := 514
	if l.Port != 0 {
		port = l.Port
	}
	conn, err := c.Dial(ctx, "udp", net.JoinHostPort(strings.Trim(l.Host, "[]"), strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("connecting to the syslog server: %w", err)
	}
	defer conn.Close()
	defer wire.InterruptOnDone(ctx, conn)()
	if _, err := conn.Write([]byte(l.message(m))); err != nil {
		return fmt.Errorf("sending to the syslog server: %w", errs.ContextError(ctx, err))
	}
	return nil
}

// message returns the entry in the format of RFC 5424, section 6, without a
// message ID and structured data.
func (l *rsyslog) message(m *notifier.Message) string {
	host, _ := os.Hostname() // "" becomes the nil value
	return fmt.Sprintf("<%d>1 %s %s %s %s - - %s",
		l.entry.priority(m.Type), m.Time.Format("2006-01-02T15:04:05.000000Z07:00"),
		syslogName(host, 255), syslogName(m.Identity.Name, 48), l.entry.process("-"), syslogText(m))
}
