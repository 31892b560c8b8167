package caddyhttp

import (
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/caddy-notify/caddy-notify"

// version is the version of this module: of a release, such as v1.2.3, of a
// commit, such as v1.2.4-0.20260301123000-0123456789ab, or "(devel)" if the
// program was built without one, as from a folder without its git history.
var version = func() string {
	info, _ := debug.ReadBuildInfo()
	return moduleVersion(info)
}()

// Version returns the version of this module: of a release, such as v1.2.3, of a
// commit, or "(devel)".
func Version() string { return version }

// UserAgent returns the User-Agent of the gateway's HTTP requests.
func UserAgent() string { return userAgent }

// userAgent is the User-Agent of the gateway's HTTP requests.
var userAgent = "caddy-notify/" + strings.Trim(version, "()") + " " + agentComment

// agentComment is the part of userAgent that is the same for every version. A
// gateway recognizes requests of another gateway by it.
const agentComment = "(+https://" + modulePath + ")"

// moduleVersion returns the version of this module in a program, which is its
// main module, or a dependency as in a program that xcaddy has built.
func moduleVersion(info *debug.BuildInfo) string {
	const unknown = "(devel)"
	if info == nil {
		return unknown
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != modulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return unknown
}
