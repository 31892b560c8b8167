package notifier

import (
	"strings"
	"testing"
)

// attacks are values that would change the structure of a URL if they were not data.
var attacks = []string{
	"evil.example/", "@127.0.0.1", "x@127.0.0.1:1/", "%2e", "%2E%2e/", "%40evil",
	"?verify=no", "&verify=no", ";verify=no", "#x", "a,b", "x,", "a:b", "://evil.example",
	"${OTHER}", "${name}", "{env.X}", "{{x}}", `\{env.X\}`, "a b", " a ", "=", "+", "ü", "[::1]",
}

// TestVariableStaysInPlace checks that a value is what the service reads in its field, and
// changes no other field.
func TestVariableStaysInPlace(t *testing.T) {
	for _, place := range []struct {
		url   string
		field func(*probe) string
	}{
		{"probe://${name}:pw@h:8080/a/tok?fixed=1", func(p *probe) string { return p.User }},
		{"probe://user:${NAME}@h:8080/a/tok?fixed=1", func(p *probe) string { return p.Password }},
		{"probe://a@b:${NAME}@h:8080/a/tok?fixed=1", func(p *probe) string { return p.Password }},
		{"probe://user:pw@h:8080/${NAME}/tok?fixed=1", func(p *probe) string { return p.path[0] }},
		{"probe://user:pw@h:8080/a/tok?+X-Name=${NAME}", func(p *probe) string { return p.header["X-Name"] }},
		{"probe://user:pw@h:8080/a/tok?user=${name}", func(p *probe) string { return p.User }},
	} {
		for _, value := range attacks {
			other := "zzzz"
			v := VariableURL{URL: place.url, Variables: []Variable{{Name: "Name"}, {Name: "OTHER", Default: &other}}}
			read := func(value string) (*Destination, *probe) {
				url, err := v.Fill(map[string]string{"name": value})
				if err != nil {
					t.Fatalf("%s with %q: %v", place.url, value, err)
				}
				d, err := Parse(url, nil)
				if err != nil {
					t.Fatalf("%s with %q: %v", place.url, value, err)
				}
				return d, d.service.(*probe)
			}
			d, p := read(value)
			plain, q := read("plain")
			if strings.TrimSpace(place.field(p)) != strings.TrimSpace(value) || place.field(q) != "plain" {
				t.Errorf("%s with %q: the field is %q", place.url, value, place.field(p))
			}
			if p.Host != "h" || p.Port != 8080 || len(p.path) != len(q.path) || len(d.Warnings()) != len(plain.Warnings()) {
				t.Errorf("%s with %q: %s, warnings %q", place.url, value, d.URL(), d.Warnings())
			}
		}
	}
}

func TestVariableFill(t *testing.T) {
	set, empty := "set", ""
	for _, tt := range []struct{ url, value, want string }{
		{"json://h/${a}/${A}", "x", "json://h/x/x"},
		{"json://h/${b}", "x", "json://h/set"},
		{"json://h/${c}/y", "x", "json://h//y"},
		{"json://${a}/p", "example.com:8080", "json://example.com:8080/p"},
		{"json://${a}/p", "user@evil.example/", "json://user%40evil.example%2F/p"},
		{"${a}://${a}?${a}=1&x=${a}", "x", "${a}://${a}?${a}=1&x=${a}"},
		{"json://h?${a}=1&x=${a}", "v", "json://h?${a}=1&x=v"},
		{"json://h/${unknown}/$a/${a", "x", "json://h/${unknown}/$a/${a"},
		{"json://h/a..${a}", "..", "json://h/a...."},
	} {
		v := VariableURL{URL: tt.url, Variables: []Variable{{Name: "A"}, {Name: "b", Default: &set}, {Name: "c", Default: &empty}}}
		if got, err := v.Fill(map[string]string{"a": tt.value}); err != nil || got != tt.want {
			t.Errorf("%s with %q: %q, %v; want %q", tt.url, tt.value, got, err, tt.want)
		}
	}
	for _, value := range []string{"s3cret\n", strings.Repeat("x", 1025)} {
		v := VariableURL{URL: "json://h/a/${a}/b", Variables: []Variable{{Name: "a"}}}
		if got, err := v.Fill(map[string]string{"a": value}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("with %q: %q, %v", value, got, err)
		}
	}
	v := VariableURL{URL: "json://h/${a}", Variables: []Variable{{Name: "a"}}}
	if _, err := v.Fill(nil); err == nil || strings.Contains(err.Error(), "${a}") {
		t.Errorf("a missing value: %v", err)
	}
}

// TestVariableFixed checks that no value can decide about the server or a file of a URL of
// the operator.
func TestVariableFixed(t *testing.T) {
	for url, fixed := range map[string]bool{
		"probe://${A}/tok":                false,
		"probe://u:p@${A}/tok":            false,
		"probe://u:p@h.${A}/tok":          false,
		"probe://u:p@h:${A}/tok":          false,
		"probe:///${A}/tok":               false,
		"probe://h/tok?HOST=${A}":         false,
		"probe://h/tok?port=${A}":         false,
		"probe://_/tok?user=${A}":         false,
		"probe://${A}:pw@_/tok":           false,
		"probe://${A}:${A}@h/${A}?x=${A}": true,
		"probe://${B}/tok":                true,
	} {
		v := VariableURL{URL: url, Variables: []Variable{{Name: "A"}}}
		if err := v.CheckFixed(); (err == nil) != fixed {
			t.Errorf("%s: %v", url, err)
		}
	}
}
