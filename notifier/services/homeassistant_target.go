package services

import (
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// hassService is a service of Home Assistant with its targets.
type hassService struct {
	domain, name string
	targets      []string
}

var (
	hassToken = lazyregexp.New(`(?i)^([0-9a-f]{8}\.[0-9a-f]{64}|[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]+)$`)
	hassWord  = lazyregexp.New(`(?i)^(?:([a-z0-9_-]+)\.)?([a-z0-9_-]+)(?::([a-z0-9_-]+))?$`)
)

// hassTarget checks a list of services. It also accepts a token, which can be among
// the targets.
func hassTarget(text string) (string, error) {
	if !hassToken.MatchString(text) && hassServices(text) == nil {
		return "", errors.New("must be written [domain.]service[:target]")
	}
	return text, nil
}

// hassServices parses a list of services with their targets, and returns nil if an
// item is invalid. A plain word after a service with targets is another target of
// that service.
func hassServices(text string) (out []hassService) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; /\t\r\n", r) }) {
		m := hassWord.FindStringSubmatch(word)
		if m == nil {
			return nil
		}
		if n := len(out) - 1; n >= 0 && len(out[n].targets) > 0 && m[2] == word {
			out[n].targets = append(out[n].targets, word)
			continue
		}
		service := hassService{domain: m[1], name: m[2]}
		if service.domain == "" {
			service.domain = "notify"
		}
		if m[3] != "" {
			service.targets = []string{m[3]}
		}
		out = append(out, service)
	}
	return out
}
