package services

import (
	"errors"
	"regexp"
	"strings"
)

// hassService is a service of Home Assistant, and what it is to notify.
type hassService struct {
	domain, name string
	targets      []string
}

var (
	hassToken = regexp.MustCompile(`(?i)^([0-9a-f]{8}\.[0-9a-f]{64}|[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]+)$`)
	hassItem  = regexp.MustCompile(`(?i)^(?:([a-z0-9_-]+)\.)?([a-z0-9_-]+)(?::([a-z0-9_-]+))?$`)
)

// hassTarget checks services, and lets the token pass, which may stand among
// them.
func hassTarget(text string) (string, error) {
	if !hassToken.MatchString(text) && hassServices(text) == nil {
		return "", errors.New("must be written [domain.]service[:target]")
	}
	return text, nil
}

// hassServices reads services with their targets; nil where one is none. A
// word behind a service that has targets is one more of these.
func hassServices(text string) (out []hassService) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; /\t\r\n", r) }) {
		m := hassItem.FindStringSubmatch(word)
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
