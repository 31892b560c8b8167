package urlsyntax

import (
	"reflect"
	"testing"
)

// TestPlaces reads and prints URLs whose host and path have the same parameter.
func TestPlaces(t *testing.T) {
	type values = map[string][]string
	for _, c := range []struct {
		template, url string
		given         string // the parameter that the query sets
		want          values // nil if the template does not match
		printed       string
	}{
		{"x://{targets...}", "x://a/b/c", "", values{"targets": {"a", "b", "c"}}, "x://a/b/c"},
		{"x://{targets...}", "x://a", "", values{"targets": {"a"}}, "x://a"},
		{"x://{targets...}", "x:///b", "", values{"targets": {"b"}}, "x://b"},
		{"x://{targets...}", "x://", "", nil, ""},
		{"x://{targets...}", "x://", "targets", values{}, ""},
		{"x://{key}@{targets...}", "x://k@a%20b/c", "", values{"key": {"k"}, "targets": {"a b", "c"}}, "x://k@a%20b/c"},
		{"x://{key|targets}[/{targets...}]", "x://k/a", "", values{"key": {"k"}, "targets": {"a"}}, "x://k/a"},
		{"x://{key|targets}[/{targets...}]", "x://a/b", "key", values{"targets": {"a", "b"}}, ""},
		{"x://{key|targets}[/{targets...}]", "x://", "key", values{}, ""},
		{"x://{key|targets}[/{targets...}]", "x://", "", nil, ""},
		{"x://[{key}]", "x://", "", values{}, "x://"},
		{"x://[{key}]", "x://k", "", values{"key": {"k"}}, "x://k"},
		{"x://[{key}]", "x://", "key", values{}, "x://"},
	} {
		tpl, err := Compile(c.template)
		if err != nil {
			t.Fatal(err)
		}
		u, ok := Split(c.url)
		if !ok {
			t.Fatal(c.url)
		}
		b, _ := tpl.Match(u, func(name string) bool { return name == c.given }, false)
		if b == nil && c.want == nil {
			continue
		}
		var got values
		if b != nil {
			got = values{}
			for _, v := range b.Values {
				got[v.Name] = v.Texts
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.template, c.url, got, c.want)
			continue
		}
		if c.printed == "" {
			continue
		}
		if printed := tpl.Print("x", b.Values.Of, false); printed != c.printed {
			t.Errorf("%s, %s: printed %s, want %s", c.template, c.url, printed, c.printed)
		}
	}
}
