package caddyhttp

import (
	"fmt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// newSavedVariables returns the variables of c. With trust client, each must be a
// whole URL.
func newSavedVariables(c *Configs) (*placeholder.Variables, error) {
	values, err := placeholder.NewVariables(c.Variables)
	if err != nil || values == nil || c.Trust != saved.TrustClient {
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

// expand returns a function for saved.Options, or nil for no variables.
func expand(values *placeholder.Variables) func(string, []notifier.Variable) (string, bool, bool, error) {
	if values == nil {
		return nil
	}
	return func(url string, declared []notifier.Variable) (expanded string, found, whole bool, err error) {
		if !values.Has(url, declared...) {
			return url, false, false, nil
		}
		expanded, err = values.Expand(url, declared...)
		return expanded, true, values.IsVariable(url), err
	}
}
