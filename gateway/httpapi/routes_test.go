package httpapi

import (
	"net/url"
	"strings"
	"testing"
)

// TestEachRouteIsFound checks that no route hides another one, and that each names what its
// path has. A route that is added to the table is checked without a line here.
func TestEachRouteIsFound(t *testing.T) {
	table := NewRouteTable(RouteSpecs())
	all := &SiteRoutes{Queue: true, Configs: true, Push: true, Console: true, Inbox: true, MCP: true}
	values := strings.NewReplacer("{KEY}", "ops", "{ID}", "42", "{SOURCE}", "grafana", "/{REST...}", "/a/b", "{TOPICS}", "one,two", "{VERB}", "json")
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
			for part, got := range map[string]string{"{KEY}": at.Key, "{ID}": at.ID, "{SOURCE}": at.Source, "/{REST...}": "/" + at.Rest, "{TOPICS}": at.topics, "{VERB}": at.verb} {
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
