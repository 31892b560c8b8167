package services

import (
	"fmt"
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mapTypes returns the choice for each type of message: defaults with the changes in from, which
// come from parameters :type=choice of the URL. Type and choice may be abbreviated.
func mapTypes(defaults map[notifier.Type]string, from map[string]string, choices []string) (map[notifier.Type]string, error) {
	types := []string{string(notifier.Info), string(notifier.Success), string(notifier.Warning), string(notifier.Failure)}
	if len(from) == 0 {
		return defaults, nil
	}
	out := maps.Clone(defaults)
	for key, value := range from {
		t, choice := beginsWith(types, key), beginsWith(choices, value)
		if t == "" || choice == "" {
			return nil, fmt.Errorf("a parameter that begins with a colon maps a type of message; "+
				"write it as :%s=%s, where the type is one of %s and the value one of %s",
				types[2], choices[0], strings.Join(types, ", "), strings.Join(choices, ", "))
		}
		out[notifier.Type(t)] = choice
	}
	return out, nil
}

// beginsWith returns the first string of list that begins with start, or "".
func beginsWith(list []string, start string) string {
	for _, s := range list {
		if start != "" && strings.HasPrefix(s, strings.ToLower(start)) {
			return s
		}
	}
	return ""
}
