package site

import (
	"slices"
	"strings"
)

// Patterns of routes to which messages have links.
const (
	RouteNotify    = "/notify"
	RouteNotifyKey = "/notify/{KEY}"

	RouteIncidents = "/notify/incidents"

	RouteAsks        = "/notify/asks"
	RouteConsoleAsks = "/notify/console/asks"
)

// PathOf returns the path of a key on a route.
func PathOf(pattern, key string) string { return strings.Replace(pattern, "{KEY}", key, 1) }

// reserved has the first segments of the routes below /notify and below /notify/{KEY}. Package
// httpapi, which has the table of routes, sets it in an init function.
var reserved struct{ keys, sources []string }

// Reserve reserves the names of the routes with these patterns, so that no key and no source can
// have them.
func Reserve(patterns []string) {
	reserved.keys, reserved.sources = below(RouteNotify, patterns), below(RouteNotifyKey, patterns)
}

// below returns the names that patterns have directly below a route.
func below(route string, patterns []string) (names []string) {
	for _, p := range patterns {
		rest, ok := strings.CutPrefix(p, route+"/")
		if name, _, _ := strings.Cut(rest, "/"); ok && !strings.HasPrefix(name, "{") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// IsReservedSource reports whether /notify/{KEY}/NAME is an address of the gateway.
func IsReservedSource(name string) bool { return ContainsFold(reserved.sources, name) }

// ContainsFold reports whether names has a segment of a path in any case. Caddy's path matchers
// ignore case: a key Incidents would be open behind a matcher that excludes /notify/incidents/*.
func ContainsFold(names []string, segment string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, segment) })
}

// HasDotSegment reports whether a path has a segment "." or "..". The gateway does not answer such
// a path: a path matcher in front of an authentication handler sees the path without these
// segments, so /notify/ops/slack/../../.. would get around a password for /notify*.
func HasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
