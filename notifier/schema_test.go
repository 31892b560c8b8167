package notifier

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestRegisterPanics checks that Register panics for a broken description.
func TestRegisterPanics(t *testing.T) {
	for name, describe := range map[string]func(*described, *Schema){
		"no place bound": func(_ *described, s *Schema) { s.URL("xx1://{host}") },
		"scheme claimed": func(d *described, s *Schema) { s.URL("probe://{host}"); s.Server(&d.server) },
		"declared twice": func(d *described, s *Schema) {
			s.URL("xx1://{a}")
			s.String(&d.a, "a", "", "")
			s.String(&d.b, "a", "", "")
		},
		"alias taken": func(d *described, s *Schema) {
			s.URL("xx1://{a}")
			s.String(&d.a, "a", "", "")
			s.String(&d.b, "b", "", "").Alias("a")
		},
		"no URL":          func(*described, *Schema) {},
		"brackets":        func(_ *described, s *Schema) { s.URL("xx2://{host}[/{a}") },
		"kind":            func(d *described, s *Schema) { s.URL("xx3://{a}"); s.String(&d.a, "a", "", "").Range(0, 1) },
		"default unknown": func(d *described, s *Schema) { s.Enum(&d.n, "a", "b", []Choice{{Name: "c"}}, "") },
		"not a field":     func(_ *described, s *Schema) { s.URL("xx4://{a}"); s.String(new(string), "a", "", "") },
		"not a field, in a list": func(d *described, s *Schema) {
			s.URL("xx5://{a...}")
			s.List(&d.list, "a", "", Prefixed{Prefix: "@", Items: new([]string)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			register(&described{describe: describe})
		})
	}
}

// described is a service that a test describes.
type described struct {
	describe func(*described, *Schema)
	server   Server
	a, b     string
	n        int
	list     []string
}

func (d *described) Describe(s *Schema) {
	s.Name = "X"
	d.describe(d, s)
}

func (d *described) Send(context.Context, *Client, *Message) error { return nil }

// parsed parses a URL of a service that is not registered.
func parsed(t *testing.T, describe func(*described, *Schema), text string) (*Destination, error) {
	t.Helper()
	u, err := splitURL(text)
	if err != nil {
		t.Fatal(err)
	}
	e := newEntry(&described{describe: describe})
	d, err := e.parse(u, false)
	if err != nil {
		return nil, err
	}
	return d, d.finish()
}

// TestDescribeOnce checks that Describe runs once for a service, that each URL
// has its own values and the defaults of the others, and that the description
// cannot be changed later.
func TestDescribeOnce(t *testing.T) {
	runs := 0
	var schema *Schema
	e := newEntry(&described{describe: func(d *described, s *Schema) {
		runs++
		schema = s
		s.URL("x://{a}[/{list...}]")
		s.String(&d.a, "a", "", "a text")
		s.String(&d.b, "b", "default", "a text")
		s.Int(&d.n, "n", 3, "a number")
		s.List(&d.list, "list", "texts")
	}})
	for _, tt := range []struct {
		url  string
		want described
		opts options
	}{
		{"x://1/2/3?b=4&retry=2", described{a: "1", b: "4", n: 3, list: []string{"2", "3"}}, options{retry: 2}},
		{"x://5?n=6", described{a: "5", b: "default", n: 6}, options{}},
	} {
		u, err := splitURL(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		d, err := e.parse(u, false)
		if err != nil {
			t.Fatal(err)
		}
		got := d.service.(*described)
		if got.a != tt.want.a || got.b != tt.want.b || got.n != tt.want.n ||
			!slices.Equal(got.list, tt.want.list) || d.options.retry != tt.opts.retry {
			t.Errorf("%s: %+v, retry %d", tt.url, got, d.options.retry)
		}
		if d.String() != tt.url {
			t.Errorf("%s is printed as %s", tt.url, d)
		}
	}
	if runs != 1 {
		t.Errorf("Describe ran %d times", runs)
	}
	for name, change := range map[string]func(){
		"declare": func() { schema.String(new(string), "c", "", "") },
		"change":  func() { schema.Param("a").Secret() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error(name, "was accepted after Describe")
				}
			}()
			change()
		}()
	}
}

// TestInvalidItems checks that a list without a valid item is an error, unless
// DropInvalid allows it to be empty.
func TestInvalidItems(t *testing.T) {
	for _, tt := range []struct {
		template string
		drop     bool
		url      string
		want     []string
		err      string
	}{
		{"x://{a}[/{to...}]", false, "x://a/1/b/2", []string{"1", "2"}, ""},
		{"x://{a}[/{to...}]", false, "x://a/b/c", nil, "X: item 1 of to (numbers) has the wrong form; write for example 7"},
		{"x://{a}[/{to...}]", false, "x://a", nil, ""},
		{"x://{a}[/{to...}]", true, "x://a/b/c", nil, ""},
		{"x://{a}/{to...}", true, "x://a/b/c", nil, "X: item 1 of to (numbers) has the wrong form"},
	} {
		d, err := parsed(t, func(x *described, s *Schema) {
			s.URL(tt.template)
			s.String(&x.a, "a", "", "a text")
			p := s.List(&x.list, "to", "numbers").Match("^[0-9]$").Example("7")
			if tt.drop {
				p.DropInvalid()
			}
		}, tt.url)
		switch {
		case tt.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("%s, %s: %v, want %s", tt.template, tt.url, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s, %s: %v", tt.template, tt.url, err)
		case !slices.Equal(d.service.(*described).list, tt.want):
			t.Errorf("%s, %s: %q, want %q", tt.template, tt.url, d.service.(*described).list, tt.want)
		case strings.Contains(tt.url, "b") != (len(d.Warnings()) > 0):
			t.Errorf("%s, %s: warnings %q", tt.template, tt.url, d.Warnings())
		}
	}
}

// TestSecretPart checks that only the secret part of a value is masked.
func TestSecretPart(t *testing.T) {
	d, err := parsed(t, func(x *described, s *Schema) {
		s.URL("x://{rooms...}")
		s.List(&x.list, "rooms", "name:key").SecretPart(func(room string) (public, secret string) {
			name, key, ok := strings.Cut(room, ":")
			if ok {
				name += ":"
			}
			return name, key
		})
	}, "x://lobby/ops:k3y")
	if err != nil {
		t.Fatal(err)
	}
	if want := "x://lobby/ops%3Axxxxx"; d.String() != want {
		t.Errorf("got %s, want %s", d, want)
	}
	if got := d.secrets(); !slices.Equal(got, []string{"k3y"}) {
		t.Errorf("secrets %q", got)
	}
}
