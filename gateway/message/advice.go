package message

import (
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// egressAdvice names the settings that allow what a policy blocks.
var egressAdvice = egress.Advice{
	Address: "the operator can allow it with egress",
	Local:   "the operator can write the URL into the configuration",
}

// NewPolicy is [egress.NewPolicy] for a policy whose errors say what the operator can do.
func NewPolicy(allow, deny []string) (*egress.Policy, error) {
	return advised(egress.NewPolicy(allow, deny))
}

// ParsePolicy is [egress.ParsePolicy] for a policy whose errors say what the operator can do.
func ParsePolicy(key string) (*egress.Policy, error) { return advised(egress.ParsePolicy(key)) }

func advised(p *egress.Policy, err error) (*egress.Policy, error) {
	if p != nil {
		p.Advice = egressAdvice
	}
	return p, err
}

// WithSuggestion is [notifier.WithSuggestion]. If no service has the scheme of url, the error also
// names the command that lists all services.
func WithSuggestion(url string, err error) error {
	if e, ok := errors.AsType[*notifier.URLError](err); ok && e.Unknown {
		err = fmt.Errorf("%w; caddy notify services lists all", err)
	}
	return notifier.WithSuggestion(url, err)
}
