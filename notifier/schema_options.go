package notifier

import (
	"errors"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones for systems without a database of them

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// options are the parameters that every service has.
type options struct {
	format   string // "" for the service's
	overflow string
	emojis   bool
	tz       string
	verify   bool
	redirect bool
	rto, cto float64 // seconds
	retry    int
	wait     float64 // seconds
	optional bool
	store    bool
	duration bool
}

// defaultWait is the default of the parameter wait, in seconds.
const defaultWait = 0.5

// options binds the parameters that every service has, except those that the
// service has declared for itself.
func (s *Schema) options(o *options) {
	first := len(s.params)
	own := func(name string) bool { p := s.byName[name]; return p != nil && !p.variable.common }
	if !own("format") {
		// The default is Schema.Format, which Finish may change.
		s.Choice(&o.format, "format", "", []string{"text", "markdown", "html"}, "what the message is converted to").Lenient()
	}
	s.Choice(&o.overflow, "overflow", string(markup.OverflowUpstream), []string{"upstream", "truncate", "split"},
		"how a text that is too long is sent: whole (split if refused), cut or split").Lenient()
	s.Bool(&o.emojis, "emojis", false, "turn names such as :smile: into emojis")
	s.String(&o.tz, "tz", "", "time zone of the times in a message, as in Europe/Berlin").Normalize(timeZone).Example("Europe/Berlin")
	s.Bool(&o.verify, "verify", true, "check the certificate of a TLS server").Strict()
	if !own("redirect") {
		s.Bool(&o.redirect, "redirect", true, "follow HTTP redirects").Strict()
	}
	s.Float(&o.rto, "rto", 0, "seconds to wait for an answer; 0 for as long as the timeout allows").Range(0, 86400).Lenient()
	s.Float(&o.cto, "cto", egress.DefaultConnectTimeout.Seconds(), "seconds to wait for a connection").Range(0.001, 86400).Lenient()
	if !own("retry") {
		s.Int(&o.retry, "retry", 0, "how often to try again after a failure").Range(0, 10).Lenient()
	}
	if !own("wait") {
		s.Float(&o.wait, "wait", defaultWait, "seconds between two attempts").Range(0, 20).Lenient()
	}
	if !own("optional") {
		s.Bool(&o.optional, "optional", false, "let the request succeed even if this destination fails")
	}
	if o.duration = true; !own("duration") {
		s.Bool(&o.duration, "duration", true, "end a resolution with how long its incident was open")
	}
	s.Bool(&o.store, "store", true, "keep sessions and tokens for the next message")
	for _, p := range s.params[first:] {
		p.common = true
	}
}

// timeZone returns the name of a time zone as in the database. As in Apprise, case does not count,
// and the region may be missing, as in berlin.
func timeZone(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if strings.EqualFold(name, "z") {
		return "UTC", nil
	}
	written := capitalized(name)
	candidates := []string{name, strings.ToUpper(name), written}
	for _, region := range []string{
		"Europe", "America", "Asia", "Africa", "Australia", "Pacific",
		"Atlantic", "Indian", "Antarctica", "Arctic", "US", "Canada",
	} {
		candidates = append(candidates, region+"/"+written)
	}
	for _, c := range candidates {
		if _, err := time.LoadLocation(c); err == nil && !strings.EqualFold(c, "local") {
			return c, nil
		}
	}
	return "", errors.New("is not the name of a time zone")
}

// capitalized returns the name of a place with its usual capital letters: America/Port_of_Spain.
func capitalized(name string) string {
	b := []byte(strings.ToLower(name))
	for at := 0; at < len(b); {
		end := at
		for ; end < len(b) && b[end] != '/' && b[end] != '_' && b[end] != '-'; end++ {
		}
		switch word := string(b[at:end]); {
		case word == "":
		case word == "us" && at == 0: // US/Eastern
			copy(b[at:], "US")
		case at > 0 && slices.Contains([]string{"of", "es", "au"}, word):
		default:
			b[at] = strings.ToUpper(word[:1])[0]
		}
		at = end + 1
	}
	return string(b)
}
