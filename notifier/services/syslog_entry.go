package services

import (
	"os"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// syslogEntry is what an entry of a log has wherever it is kept.
type syslogEntry struct {
	facility int
	pid      bool
}

func (e *syslogEntry) describe(s *notifier.Schema) {
	s.Enum(&e.facility, "facility", "user", []notifier.Choice{
		{Name: "kern", Value: 0}, {Name: "user", Value: 1}, {Name: "mail", Value: 2},
		{Name: "daemon", Value: 3}, {Name: "auth", Value: 4}, {Name: "syslog", Value: 5},
		{Name: "lpr", Value: 6}, {Name: "news", Value: 7}, {Name: "uucp", Value: 8},
		{Name: "cron", Value: 9}, {Name: "local0", Value: 16}, {Name: "local1", Value: 17},
		{Name: "local2", Value: 18}, {Name: "local3", Value: 19}, {Name: "local4", Value: 20},
		{Name: "local5", Value: 21}, {Name: "local6", Value: 22}, {Name: "local7", Value: 23},
	}, "part of the system that the entry is filed under")
	s.Bool(&e.pid, "logpid", true, "name the process that sends")
}

// priority is facility and severity in one (RFC 5424, section 6.2.1).
func (e *syslogEntry) priority(t notifier.Type) int {
	severity := 6 // informational
	switch t {
	case notifier.Success:
		severity = 5 // notice
	case notifier.Warning:
		severity = 4
	case notifier.Failure:
		severity = 2 // critical
	}
	return e.facility*8 + severity
}

// process is the number of the process, or none where it is not to be named.
func (e *syslogEntry) process(none string) string {
	if !e.pid {
		return none
	}
	return strconv.Itoa(os.Getpid())
}

// syslogText is the message in one. A log takes it as it is, line breaks
// included; some end it at a NUL.
func syslogText(m *notifier.Message) string {
	return strings.ReplaceAll(m.Text(": "), "\x00", "\uFFFD")
}

// syslogName makes a text a field of an entry's header: printable ASCII
// without spaces (RFC 5424, section 6), and without what ends such a field in
// older entries.
func syslogName(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r < '!' || r > '~' || strings.ContainsRune("[]:", r):
			return -1
		}
		return r
	}, s)
	if s == "" {
		return "-"
	}
	return s[:min(len(s), most)]
}
