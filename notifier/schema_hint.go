package notifier

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// A Hint describes a text that people copy from a service or have at hand, such as
// a token. [Recognize] finds the service by it.
type Hint struct {
	// Text is a regular expression for the whole text. Its named groups are the values of
	// parameters, as in (?<token>xoxb-[\w-]+). The items of a list that is a path are separated by
	// slashes.
	//
	// An empty (?<address>) stands for the beginning of a web address, as in
	// https://chat.example.com:8443. It sets the scheme, the host, the port, the user and the
	// password.
	Text string

	// Is describes the text, as in "the token of a bot".
	Is string

	// Note says what to do if the service needs another text, as in "Telegram needs the token of
	// the bot". It is a sentence without its full stop.
	Note string

	// Guess reports whether other services have texts of this form, too.
	Guess bool
}

// hint is a Hint of a service.
type hint struct {
	Hint
	text    string // of Hint
	names   []string
	pattern *lazyregexp.Regexp
}

// hintAddress is the group for the beginning of a web address.
const hintAddress = "address"

// Hints declares texts by which the service is recognized. Addresses of [Schema.Native] need none.
func (s *Schema) Hints(hints ...Hint) {
	for _, h := range hints {
		x := &hint{Hint: h, text: h.Text}
		x.names = groupNames(h.Text)
		text := strings.ReplaceAll(h.Text, "(?<"+hintAddress+">)", "(?<"+hintAddress+`>(?i:https?)://[^/?#\s]+)`)
		x.pattern = lazyregexp.New(`^(?:` + text + `)$`)
		s.hints = append(s.hints, x)
	}
}

// NoWeb declares that the service uses another protocol than HTTP, so that the addresses of its
// servers do not begin with http:// or https://.
func (s *Schema) NoWeb() { s.noWeb = true }

// groupNames returns the names of the groups of a regular expression, without
// compiling it.
func groupNames(text string) (names []string) {
	for _, part := range strings.Split(text, "(?<")[1:] {
		name, _, _ := strings.Cut(part, ">")
		names = append(names, name)
	}
	return names
}

// match returns the values in a text, or nil if it does not match.
func (h *hint) match(text string) map[string]string {
	m := h.pattern.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	values := map[string]string{}
	for i, name := range h.pattern.SubexpNames() {
		if name != "" && m[i] != "" {
			values[name] = m[i]
		}
	}
	return values
}
