package version_test

import (
	"runtime/debug"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/version"
)

func TestModuleVersion(t *testing.T) {
	t.Parallel()
	const other = "github.com/caddyserver/caddy/v2"
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no information": {nil, "(devel)"},
		"main module":    {&debug.BuildInfo{Main: debug.Module{Path: version.ModulePath, Version: "v1.2.3"}}, "v1.2.3"},
		"no git history": {&debug.BuildInfo{Main: debug.Module{Path: version.ModulePath}}, "(devel)"},
		"built with xcaddy": {&debug.BuildInfo{
			Main: debug.Module{Path: "caddy", Version: "v9.9.9"},
			Deps: []*debug.Module{{Path: other, Version: "v2.11.9"}, {Path: version.ModulePath, Version: "v1.2.3"}},
		}, "v1.2.3"},
		"built with xcaddy from a folder": {&debug.BuildInfo{
			Main: debug.Module{Path: "caddy"},
			Deps: []*debug.Module{{Path: version.ModulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "/src/caddy-notify"}}},
		}, "(devel)"},
		"a fork": {&debug.BuildInfo{
			Deps: []*debug.Module{{
				Path: version.ModulePath, Version: "v1.2.3",
				Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"},
			}},
		}, "v1.2.4"},
		"another program": {&debug.BuildInfo{Deps: []*debug.Module{{Path: other, Version: "v2.11.9"}}}, "(devel)"},
	} {
		if got := version.ModuleVersion(tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
