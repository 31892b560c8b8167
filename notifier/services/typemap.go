package services

import (
	"fmt"
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mapTypes changes what each type of message means to a service: from is what
// the URL says as :type=choice, where both may be cut short.
func mapTypes(defaults map[notifier.Type]string, from map[string]string, choices []string) (map[notifier.Type]string, error) {
	types := []string{string(notifier.Info), string(notifier.Success), string(notifier.Warning), string(notifier.Failure)}
	out := maps.Clone(defaults)
	for key, value := range from {
		t, choice := beginsWith(types, key), beginsWith(choices, value)
		if t == "" || choice == "" {
			return nil, fmt.Errorf("a parameter that begins with a colon says what becomes of a type; write :%s=%s, with one of %s and one of %s",
				types[2], choices[0], strings.Join(types, ", "), strings.Join(choices, ", "))
		}
		out[notifier.Type(t)] = choice
	}
	return out, nil
}

// beginsWith is the first of list that begins with start, or "".
func beginsWith(list []string, start string) string {
	for _, s := range list {
		if start != "" && strings.HasPrefix(s, strings.ToLower(start)) {
			return s
		}
	}
	return ""
}
