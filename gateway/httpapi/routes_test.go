package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestEachRouteIsFound checks that no route hides another one, and that each names the parts of its
// path. A new route in the table is checked without a line here.
func TestEachRouteIsFound(t *testing.T) {
	table := NewRouteTable(RouteSpecs())
	all := &SiteRoutes{Queue: true, Configs: true, Push: true, Console: true, Inbox: true, MCP: true}
	values := strings.NewReplacer("{KEY}", "ops", "{ID}", "42", "{SOURCE}", "grafana", "/{REST...}", "/a/b", "{TOPICS}", "one,two",
		"{VERB}", "json")
	for _, spec := range RouteSpecs() {
		path := values.Replace(spec.Pattern)
		if strings.Contains(path, "{") {
			t.Fatalf("%s has a part that this test does not know", spec.Pattern)
		}
		for _, path := range []string{path, path + "/"} {
			at, ok := table.Parse(&url.URL{Path: path}, all)
			if !ok || at.Pattern != spec.Pattern {
				t.Errorf("%s is found as %v, want %s", path, at.RouteSpec, spec.Pattern)
				continue
			}
			for part, got := range map[string]string{
				"{KEY}": at.Key, "{ID}": at.ID, "{SOURCE}": at.Source, "/{REST...}": "/" + at.Rest,
				"{TOPICS}": at.topics, "{VERB}": at.verb,
			} {
				if want := values.Replace(part); strings.Contains(spec.Pattern, part) && got != want {
					t.Errorf("%s: %s is %q, want %q", path, part, got, want)
				}
			}
		}
		if spec.On != nil && spec.On(&SiteRoutes{}) {
			t.Errorf("a site without anything has %s", spec.Pattern)
		}
	}
}

// TestReservedNamesFollowRoutes checks that no key and no source can have the name of a route, in
// any case, even of a new route in the table, because their address would be ambiguous.
func TestReservedNamesFollowRoutes(t *testing.T) {
	specs := append(RouteSpecs(), RouteSpec{Pattern: "/notify/newthing"}, RouteSpec{Pattern: "/notify/other/{ID}"},
		RouteSpec{Pattern: "/notify/{KEY}/newpart"}, RouteSpec{Pattern: "/notify/{KEY}/otherpart/{ID}/test"})
	defer site.Reserve(patternsOf(RouteSpecs()))
	site.Reserve(patternsOf(specs))
	for _, spec := range specs {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(spec.Pattern, site.RouteNotifyKey+"/"), site.RouteNotify+"/"), "/")
		if !site.IsKeyName(name) {
			continue // no key and no source can have this name: it has a dot, or is a placeholder
		}
		switch name, below := strings.ToUpper(name[:1])+name[1:], strings.HasPrefix(spec.Pattern, site.RouteNotifyKey+"/"); {
		case below && !site.IsReservedSource(name):
			t.Errorf("%s: a source can have the name %s", spec.Pattern, name)
		case !below && strings.HasPrefix(spec.Pattern, site.RouteNotify+"/") && site.CheckKeyName(name) == nil:
			t.Errorf("%s: a key can have the name %s", spec.Pattern, name)
		}
	}
	if site.CheckKeyName("newpart") != nil || site.IsReservedSource("newthing") {
		t.Error("a name is reserved at a place where no route has it")
	}
}
