package site

import (
	"slices"
	"strings"
)

// Patterns of routes to which messages have links.
const (
	RouteNotifyKey = "/notify/{KEY}"

	RouteIncidents = "/notify/incidents"

	RouteAsks        = "/notify/asks"
	RouteConsoleAsks = "/notify/console/asks"
)

// PathOf returns the path of a key on a route.
func PathOf(pattern, key string) string { return strings.Replace(pattern, "{KEY}", key, 1) }

// isReserved reports whether no key can have a name, because /notify/NAME is an address of the
// gateway, now or later.
func isReserved(name string) bool {
	return ContainsFold([]string{"asks", "console", "incidents", "messages", "status"}, name)
}

// ContainsFold reports whether a segment of a path is one of names in any case. Caddy's path
// matchers ignore case: a key Incidents would be open behind a matcher that leaves out
// /notify/incidents/*.
func ContainsFold(names []string, segment string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, segment) })
}

// HasDotSegment reports whether a path has a segment "." or "..". The gateway does not
// answer such a path: a path matcher in front of an authentication handler compares what
// remains without these segments, so that /notify/ops/slack/../../.. would get around a
// password for /notify*.
func HasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
