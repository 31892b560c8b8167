package notifier

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// An ignoredParam is a parameter without effect that URLs in use have.
type ignoredParam struct {
	name     string // in lower case; a * at the end stands for any text
	reason   string
	harmless []string
}

// Ignore declares a parameter that Apprise has and that has no effect here. URLs with it are
// accepted with a warning, which ends in reason. If values are given, any other value is a
// mistake, like the value of an unknown parameter: see [Destination.Mistake]. A * at the end of
// the name stands for any text.
func (s *Schema) Ignore(name, reason string, values ...string) {
	s.ignored = append(s.ignored, ignoredParam{name, reason, values})
}

// ignoredParam returns the parameter without effect that a key of the query
// names, or nil.
func (d *description) ignoredParam(key string) *ignoredParam {
	for i := range d.ignored {
		p := &d.ignored[i]
		prefix, isPrefix := strings.CutSuffix(p.name, "*")
		if strings.EqualFold(key, p.name) || isPrefix && strings.HasPrefix(key, prefix) {
			return p
		}
	}
	return nil
}

// warn adds the warning for the value of q to d.
func (p *ignoredParam) warn(d *Destination, q urlsyntax.QueryParam) {
	add := d.note
	if len(p.harmless) > 0 && !slices.ContainsFunc(p.harmless, func(v string) bool { return strings.EqualFold(v, q.Value) }) {
		add = d.warn
	}
	name := p.name
	if paramName.MatchString(q.Key) {
		name = q.Key
	}
	add("the parameter %s has no effect: %s", name, p.reason)
}
