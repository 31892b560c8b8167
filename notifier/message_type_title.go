package notifier

import (
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// TypeOfTitle returns the type that a title or the subject of a mail states, or "" if it states
// none. It reads the titles of monitoring programs:
//
//	[FIRING:1] DiskFull (nas critical)              Alertmanager
//	[FIRING:1, RESOLVED:2] DiskFull                 Grafana; earlier [Alerting], [OK]
//	[nas] [🔴 Down] connection refused              Uptime Kuma
//	[PROBLEM] Disk on nas is CRITICAL!              Icinga
//	** RECOVERY Service Alert: nas/Disk is OK **    Nagios
//	Resolved in 5m 3s: Disk is full                 Zabbix; earlier OK: Disk is full
//	DOWN | nas                                      Healthchecks
//	Checkmk: nas/Disk OK -> CRIT                    Checkmk
//	ALARM: "disk" in EU (Ireland)                   Amazon CloudWatch
//
// Only words at these places count, and only words that say whether something is broken.
func TypeOfTitle(title string) Type {
	var found states
	rest := strings.TrimLeftFunc(title, isDecoration)
	for strings.HasPrefix(rest, "[") {
		group, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			break
		}
		for word := range strings.SplitSeq(group, ",") {
			word, _, _ = strings.Cut(word, ":") // a number
			found.add(word)
		}
		rest = strings.TrimLeft(after, "] ")
	}
	if m := leadingWord.FindStringSubmatch(rest); m != nil && found == (states{}) {
		found.add(m[1])
	}
	if m := lastWord.FindStringSubmatch(rest); m != nil && (m[1] == "->" || found.broken) {
		found.add(m[2])
	}
	return found.typ()
}

var (
	// leadingWord matches a word at the beginning that is a state because of the text after it.
	leadingWord = lazyregexp.New(`^(?i:updated )?(\pL+)(?i: in \d[\ddhmswy ]*)?(?:: | \| | (?i:host|service) (?i:alert): )`)

	// lastWord matches the state at the end, after the previous state or after "is".
	lastWord = lazyregexp.New(`(->|\b(?i:is)) (\pL+)[!* ]*$`)
)

// isDecoration reports whether r is a sign that programs put before a title.
func isDecoration(r rune) bool { return r != '[' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// states are the states that a title names.
type states struct{ broken, over, critical, warning bool }

// add adds the state that a word names, if any.
func (s *states) add(word string) {
	switch strings.ToLower(strings.TrimFunc(word, isDecoration)) {
	case "firing", "alerting", "problem", "alarm", "down", "unreachable":
		s.broken = true
	case "resolved", "recovery", "recovered", "ok", "up":
		s.over = true
	case "critical", "crit":
		s.critical = true
	case "warning", "warn":
		s.warning = true
	}
}

// typ returns the type for the states. A group with one broken alert is broken, and a severity does
// not say whether an alert is over.
func (s *states) typ() Type {
	switch {
	case s.over && !s.broken:
		return Success
	case s.warning && !s.critical:
		return Warning
	case s.broken || s.critical:
		return Failure
	}
	return ""
}
