package caddyhttp

import (
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// newSavedVariables returns the variables of c. With trust client, each must be a
// whole URL.
func newSavedVariables(c *Configs) (*placeholder.Variables, error) {
	values, err := placeholder.NewVariables(c.Variables)
	if err != nil || values == nil || c.Trust != trustClient {
		return values, err
	}
	for name := range c.Variables {
		url, err := values.Expand("${" + name + "}")
		if err == nil {
			_, err = parseUnshared(url, notifier.Files{})
		}
		if err != nil {
			return nil, fmt.Errorf("the variable %s must be a notification URL, unless trust is operator: %w", name, err)
		}
	}
	return values, nil
}

// expand returns a function for savedOptions, or nil for no variables.
func expand(values *placeholder.Variables) func(string) (string, bool, bool, error) {
	if values == nil {
		return nil
	}
	return func(url string) (expanded string, found, whole bool, err error) {
		if !values.Has(url) {
			return url, false, false, nil
		}
		expanded, err = values.Expand(url)
		return expanded, true, values.IsVariable(url), err
	}
}

// errVariablePart is returned for a variable that stands for a part of a URL. The
// client that saves the URL could send the value to a server of its own.
var errVariablePart = errors.New("a variable stands for a whole URL here; write it alone, as in ops=${NAME}")

// expand replaces the variables of a saved URL. The policy is that for the URL: a
// variable that is the whole URL is the operator's.
func (s *savedKeys) expand(url string) (string, *egress.Policy, error) {
	if s.Expand == nil {
		return url, s.policy, nil
	}
	expanded, found, whole, err := s.Expand(url)
	switch {
	case !found:
		return url, s.policy, nil
	case !s.Trusted && !whole:
		return "", nil, errVariablePart
	}
	return expanded, nil, err
}
