package version

import (
	"runtime/debug"
	"strings"
)

const ModulePath = "github.com/caddy-notify/caddy-notify"

// Current is the version of this module: of a release, such as v1.2.3, of a
// commit, such as v1.2.4-0.20260301123000-0123456789ab, or "(devel)" if the
// program was built without one, as from a folder without its git history.
var Current = func() string {
	info, _ := debug.ReadBuildInfo()
	return ModuleVersion(info)
}()

// Agent is the User-Agent of the gateway's HTTP requests.
var Agent = "caddy-notify/" + strings.Trim(Current, "()") + " " + AgentComment

// AgentComment is the part of Agent that is the same for every version. A
// gateway recognizes requests of another gateway by it.
const AgentComment = "(+https://" + ModulePath + ")"

// ModuleVersion returns the version of this module in a program, which is its
// main module, or a dependency as in a program that xcaddy has built.
func ModuleVersion(info *debug.BuildInfo) string {
	const unknown = "(devel)"
	if info == nil {
		return unknown
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != ModulePath {
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
