package saved

import (
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// errVariablePart is returned for a variable that stands for a part of a URL. The
// client that saves the URL could send the value to a server of its own.
var errVariablePart = errors.New("a variable stands for a whole URL here; write it alone, as in ops=${NAME}")

// expand replaces the variables of a saved URL. The policy is that for the URL: a
// variable that is the whole URL is the operator's.
func (s parser) expand(url string) (string, *egress.Policy, error) {
	if s.keys.Expand == nil {
		return url, s.keys.policy, nil
	}
	expanded, found, whole, err := s.keys.Expand(url)
	switch {
	case !found:
		return url, s.keys.policy, nil
	case !s.keys.Trusted && !whole:
		return "", nil, errVariablePart
	}
	return expanded, nil, err
}
