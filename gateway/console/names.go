package console

import (
	"strconv"
	"strings"
	"sync"

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

// maxNames is the maximum number of destinations named in a line.
const maxNames = 8

// namesOf returns the names of targets, with their tags, in one line.
func namesOf(targets []notifier.Target) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name()
	}
	return joinNames(names)
}

// joinNames returns names in one line. Equal names have a count.
func joinNames(all []string) string {
	count := map[string]int{}
	var names []string
	for _, name := range all {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	more := 0
	for _, name := range names[min(len(names), maxNames):] {
		more += count[name]
	}
	names = names[:min(len(names), maxNames)]
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = strconv.Itoa(n) + " × " + name
		}
	}
	out := strings.Join(names, ", ")
	if more > 0 {
		out += " and " + strconv.Itoa(more) + " more"
	}
	return out
}
