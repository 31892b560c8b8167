package services

import (
	"os"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// syslogEntry has the parameters that syslog and rsyslog share.
type syslogEntry struct {
	facility int
	pid      bool
}

func (e *syslogEntry) describe(s *notifier.Schema) {
	s.Enum(&e.facility, "facility", "user", []notifier.Choice{
		{Name: "kern", Value: 0},
		{Name: "user", Value: 1},
		{Name: "mail", Value: 2},
		{Name: "daemon", Value: 3},
		{Name: "auth", Value: 4},
		{Name: "syslog", Value: 5},
		{Name: "lpr", Value: 6},
		{Name: "news", Value: 7},
		{Name: "uucp", Value: 8},
		{Name: "cron", Value: 9},
		{Name: "local0", Value: 16},
		{Name: "local1", Value: 17},
		{Name: "local2", Value: 18},
		{Name: "local3", Value: 19},
		{Name: "local4", Value: 20},
		{Name: "local5", Value: 21},
		{Name: "local6", Value: 22},
		{Name: "local7", Value: 23},
	}, "part of the system that the entry comes from")
	s.Bool(&e.pid, "logpid", true, "include the process ID")
}

// priority returns the number for facility and severity (RFC 5424, section 6.2.1).
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

// process returns the process ID, or none if logpid is off.
func (e *syslogEntry) process(none string) string {
	if !e.pid {
		return none
	}
	return strconv.Itoa(os.Getpid())
}

// syslogText returns title and body as one text. It keeps line breaks, and replaces
// NULs because some logs end an entry there.
func syslogText(m *notifier.Message) string {
	return strings.ReplaceAll(m.Text(": "), "\x00", "\uFFFD")
}

// syslogName returns s as a field of an entry's header, of up to size printable ASCII
// characters without spaces (RFC 5424, section 6). It also removes the characters that
// end the tag of an entry in the older format (RFC 3164, section 4.1.3).
func syslogName(s string, size int) string {
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
	return s[:min(len(s), size)]
}
