package console

import (
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/console/inline"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// named returns a destination as the pages name it. shown is its URL with the secrets masked.
func named(service, shown string) view.Named {
	return view.Named{Name: notifier.NameOf(service, shown), Group: groupOf(shown)}
}

// groupOf returns the main group of the service of a URL.
func groupOf(shown string) string {
	scheme, _, _ := strings.Cut(shown, "://")
	if scheme == "device" {
		return string(notifier.GroupPhone)
	}
	if group, ok := groups.Load(scheme); ok {
		return group.(string)
	}
	group := ""
	if s := notifier.FindService(scheme); s != nil && len(s.Groups) > 0 {
		group = string(s.Groups[0])
		groups.Store(scheme, group)
	}
	return group
}

// groups caches the groups of services by scheme, of which there is a fixed number.
var groups sync.Map

// namesOf returns the names of targets, with their tags, in one line.
func namesOf(targets []notifier.Target) string {
	all := make([]string, len(targets))
	for i, t := range targets {
		all[i] = t.Name()
	}
	return inline.Names(all)
}
