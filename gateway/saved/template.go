package saved

import (
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// useTemplate returns the target of an entry whose URL is a template. A message without values gets
// the defaults of the template; if a default is missing, the delivery fails.
func (s parser) useTemplate(e appriseconfig.Entry, url string, policy *egress.Policy) (notifier.Target, error) {
	v := &notifier.VariableURL{URL: url, Variables: slices.Clone(e.Template)}
	schemes, err := v.Schemes()
	if err != nil {
		return notifier.Target{}, err
	}
	for _, rule := range s.keys.services {
		if schemes != nil && !rule.Permits(schemes) {
			return notifier.Target{}, fmt.Errorf("the service of %s:// may not be used here; the setting services forbids it", schemes[0])
		}
	}
	if s.keys.Trusted {
		v.SetDefaults(s.keys.Value)
		if err := v.CheckFixed(); err != nil {
			return notifier.Target{}, err
		}
	}
	v.Make = func(values map[string]string) (*notifier.Destination, error) {
		return s.fill(v, values, func(url string) (*notifier.Destination, error) { return s.keys.Sender.ParseOnce(url, policy) },
			(*notifier.Destination).Close)
	}
	d, err := s.fill(v, nil, func(url string) (*notifier.Destination, error) { return s.keys.Sender.Parse(url, policy) },
		s.keys.Sender.Release)
	if errors.Is(err, notifier.ErrNoValue) {
		d, err = notifier.Unfilled(e.URL, policy, err), nil
	}
	return notifier.Target{Destination: d, Tags: e.Tags, Variable: v}, err
}

// fill returns the destination of v with values. It calls parse to make the destination, and drop
// if its service may not be used.
func (s parser) fill(v *notifier.VariableURL, values map[string]string, parse func(string) (*notifier.Destination, error),
	drop func(*notifier.Destination),
) (*notifier.Destination, error) {
	d, err := v.Destination(values, parse)
	if err != nil {
		return nil, err
	}
	if err := s.keys.services.Check(d); err != nil {
		drop(d)
		return nil, err
	}
	return d, nil
}
