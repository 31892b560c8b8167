package appriseconfig

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/caddy-notify/caddy-notify/notifier/services" // whose parameters are not tags
)

// TestTemplate checks which variables of an entry get values of messages: those that the
// file declares, in every place but tags, the scheme and the names of parameters.
func TestTemplate(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"a map", "version: 2\ntemplate:\n  A: one\n  b:\n  c: ''\nurls: ['json://h/${a}/${B}/${C}']", "json://h/${a}/${B}/${C} A=one b c="},
		{"a list", "template: [A, {b: 2}, {c: }]\nurls: ['json://h/${a}/${b}/${c}']", "json://h/${a}/${b}/${c} A b=2 c"},
		{"nothing", "template:\nurls: ['json://h/${a}']", "json://h/${a}"},
		{
			"options", "template: [A, 2]\nurls:\n- json://h:\n    to: 'x ${A}&${2}'\n    +X: '${other}'",
			"json://h?to=x%20${A}%26${2}&%2BX=${other} A 2",
		},
		{"not in tags", "template: [A]\nurls:\n- json://h?tag=x${A}:\n    tag: ${A}", "json://h"},
		{"not in the scheme", "template: [A]\nurls: ['${A}://h', '${A}']", "${A}://h\n${A}"},
		{"not in names", "template: [A]\nurls: ['json://h?${A}=1', 'json://h?x${A}']", "json://h?${A}=1\njson://h?x${A}"},
		{"only declared", "template: [A]\nurls: ['json://h/${AB}/$A/${A']", "json://h/${AB}/$A/${A"},
	} {
		entries, _, err := load("/f.yml", map[string]string{"/f.yml": tt.content})
		var got []string
		for _, e := range entries {
			line := e.URL
			for _, v := range e.Template {
				line += " " + v.Name
				if v.Default != nil {
					line += "=" + *v.Default
				}
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "\n"); err != nil || text != tt.want {
			t.Errorf("%s: %q, error %v; want %q", tt.name, text, err, tt.want)
		}
	}
	for content, want := range map[string]string{
		"template: s3cret":                                     "1: template must be a map",
		"template:\n- [s3cret]":                                "2: each item of template",
		"template:\n- ":                                        "2: each item of template",
		"template:\n  a: [s3cret]":                             "2: the default of a name",
		"template:\n  a-s3cret: x":                             "2: a name of template",
		"template:\n  a: x\n  A: s3cret":                       "3: the template has the name twice",
		"template:\n  a: \"s3cret\\n\"":                        "2: a default has",
		"template:\n  a: " + strings.Repeat("s3cret", 200):     "2: a default has",
		"template: [a]\nurls: []\ntemplate: [s3cret]":          "3: the file has a second section template",
		"urls: [json://s3cret]\nversion: 2\nurls: []":          "3: the file has a second section urls",
		"template: [" + strings.Repeat("a,", 32) + "s3cret__]": "1: the template has the name twice",
		fmt.Sprintf("template: [%s]", strings.Repeat("a", 33)): "1: a name of template",
	} {
		_, _, err := load("/f.yml", map[string]string{"/f.yml": content})
		if err == nil || !strings.HasPrefix(err.Error(), "/f.yml:"+want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: error %v, want %s", content, err, want)
		}
	}
}

// TestTagsInURL checks that tags in the query of a URL are tags of the entry, unless the
// service has such a parameter itself.
func TestTagsInURL(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"/f", "json://h?tag=Ops", "/f:1 [Ops] json://h\n"},
		{"/f", "x=json://h/p?a=b&Tags=ops,2:dev+x&c=d", "/f:1 [x ops 2:dev] json://h/p?a=b&c=d\n"},
		{"/f", "ops=json://h?tags=OPS&tag=b", "/f:1 [ops b] json://h\n"},
		{"/f", "g=ops\njson://h?tag=ops", "/f:2 [ops g] json://h\n"},
		{"/f", "json://h?:tag=x&stage=1", "/f:1 [] json://h?:tag=x&stage=1\n"},
		{"/f", "apprise://h/key?tags=ops", "/f:1 [] apprise://h/key?tags=ops\n"},
		{"/f", "ntfy://topic?tags=warning&tag=ops", "/f:1 [ops] ntfy://topic?tags=warning\n"},
		{"/f.yml", "tag: all-of-them\nurls:\n- json://h?tag=a:\n    tag: b", "/f.yml:3 [b all-of-them a] json://h\n"},
	} {
		entries, _, err := load(tt.name, map[string]string{tt.name: tt.content})
		if got := lines(entries); err != nil || got != tt.want {
			t.Errorf("%q: %q, error %v; want %q", tt.content, got, err, tt.want)
		}
	}
}
