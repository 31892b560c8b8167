package notifier

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestRegisterPanics checks that Register panics for a broken description.
func TestRegisterPanics(t *testing.T) {
	for name, describe := range map[string]func(*Schema){
		"no place bound": func(s *Schema) { s.Name = "X"; s.URL("xx1://{host}") },
		"scheme claimed": func(s *Schema) { s.Name = "X"; s.URL("probe://{host}"); s.Server(new(Server)) },
		"declared twice": func(s *Schema) { s.Name = "X"; s.String(new(string), "a", "", ""); s.String(new(string), "a", "", "") },
		"alias taken": func(s *Schema) {
			s.Name = "X"
			s.String(new(string), "a", "", "")
			s.String(new(string), "b", "", "").Alias("a")
		},
		"no URL":          func(s *Schema) { s.Name = "X" },
		"brackets":        func(s *Schema) { s.Name = "X"; s.URL("xx2://{host}[/{a}") },
		"kind":            func(s *Schema) { s.Name = "X"; s.URL("xx3://{a}"); s.String(new(string), "a", "", "").Range(0, 1) },
		"default unknown": func(s *Schema) { s.Name = "X"; s.Enum(new(int), "a", "b", []Choice{{Name: "c"}}, "") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			register(func() Service { return &described{describe} })
		})
	}
}

type described struct{ describe func(*Schema) }

func (d *described) Describe(s *Schema) { d.describe(s) }

func (d *described) Send(context.Context, *Client, *Message) error { return nil }

// parsed parses a URL of a service that is not registered.
func parsed(t *testing.T, describe func(*Schema), text string) (*Destination, error) {
	t.Helper()
	u, err := splitURL(text)
	if err != nil {
		t.Fatal(err)
	}
	e := newEntry(func() Service { return &described{describe} })
	d, err := e.parse(u, false)
	if err != nil {
		return nil, err
	}
	return d, d.finish()
}

// TestDescribeAgain checks that Describe, which runs for every URL, cannot
// extend the description in later runs, and must bind the same parameters.
func TestDescribeAgain(t *testing.T) {
	runs := 0
	describe := func(s *Schema) {
		s.Name = "X"
		s.URL("x://{a}")
		p := s.String(new(string), "a", "", "a text")
		if runs++; runs > 1 {
			p.Match("^never$").Alias("b").Secret().Example("other")
			s.URL("x://{b}")
		}
	}
	d, err := parsed(t, describe, "x://text")
	if err != nil {
		t.Fatal(err)
	}
	if d.String() != "x://text" || len(d.schema.templates) != 1 || len(d.schema.byName) != len(d.schema.params) {
		t.Errorf("the second run changes the description: %s", d)
	}

	for name, second := range map[string]func(*Schema){
		"another": func(s *Schema) { s.String(new(string), "c", "", "a text") },
		"fewer":   func(*Schema) {},
		"more":    func(s *Schema) { s.String(new(string), "a", "", "a text"); s.String(new(string), "c", "", "a text") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			runs := 0
			_, _ = parsed(t, func(s *Schema) {
				s.Name = "X"
				s.URL("x://{a}")
				if runs++; runs > 1 {
					second(s)
					return
				}
				s.String(new(string), "a", "", "a text")
			}, "x://text")
		})
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
		var to []string
		d, err := parsed(t, func(s *Schema) {
			s.Name = "X"
			s.URL(tt.template)
			s.String(new(string), "a", "", "a text")
			p := s.List(&to, "to", "numbers").Match("^[0-9]$").Example("7")
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
		case !slices.Equal(to, tt.want):
			t.Errorf("%s, %s: %q, want %q", tt.template, tt.url, to, tt.want)
		case strings.Contains(tt.url, "b") != (len(d.Warnings()) > 0):
			t.Errorf("%s, %s: warnings %q", tt.template, tt.url, d.Warnings())
		}
	}
}

// TestSecretPart checks that only the secret part of a value is masked.
func TestSecretPart(t *testing.T) {
	d, err := parsed(t, func(s *Schema) {
		s.Name = "X"
		s.URL("x://{rooms...}")
		s.List(new([]string), "rooms", "name:key").SecretPart(func(room string) (public, secret string) {
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
	if got := d.schema.secrets(); !slices.Equal(got, []string{"k3y"}) {
		t.Errorf("secrets %q", got)
	}
}
