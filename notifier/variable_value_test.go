package notifier

import (
	"errors"
	"strings"
	"testing"
)

// TestValuesStay checks that a destination is only made with values that stay where their
// variables are, in fields of each kind.
func TestValuesStay(t *testing.T) {
	dots := []string{
		"..", ".", " ..", ".. ", "\u00a0..", "\u2003.\u2003", "%2e%2e", "%252e%252e", "%2E.",
		"x/../..", "../hook", `..\hook`, `x\..`, "..;a", "/..", "..%2fhook", "..%5chook",
		"\uff0e\uff0e", "\u2025", "\u2024\u2024", "..\uff0fhook", "..\uff3chook",
	}
	lists := []string{"x,y", "x y", "x;y", ",x,y", "x\u00a0y,z", "victim@evil.org,x", "victim@evil.org x", ",", "x,,y"}
	for _, tt := range []struct {
		url     string
		good    []string
		refused [][]string
	}{
		{
			"probe://h/${V}/tok",
			[]string{"ops", "a b", "a,b", "...", "a..b", "v1.2", "#1", "ü", "a@b", "a:b", "a+b", "?x", "&x=y"},
			[][]string{dots, {"", " "}},
		},
		{"probe://h/a/x-${V}-y/tok", []string{"ops", "a b", "..", "a,b"}, [][]string{{"/../z", "%2f..%2f"}}},
		{"probe://h/tok?path=${V}", []string{"ops", "a b"}, [][]string{dots}},
		{"probe://h/a/${V}", []string{"abc", "a-b", "1"}, [][]string{dots, lists, {"a b", "A@b", ""}}},
		{"probe://${V}:pw@h/tok", []string{"ops", "a b", "a,b", "me@example.com", "a:b"}, nil},
		{"many://tok/${V}", []string{"ops", "a.b", "me@example.com", "a/b", "a:b", "x,"}, [][]string{dots, lists, {"@boss", "", " "}}},
		{"many://tok/fixed/${V}", []string{"ops", "fixed", "a.b"}, [][]string{dots, lists, {"@boss", "", " ", ","}}},
		{"many://tok/@${V}", []string{"ops", "a.b"}, [][]string{dots[1:5], lists}},
		{"many://tok/a-${V}-b", []string{"ops", "@x"}, [][]string{{"x,y", "x y", "x;y"}}},
		{"many://tok/a?to=${V}", []string{"ops"}, [][]string{dots, lists, {"@boss"}}},
		{"many://tok/a?to=b,${V},c", []string{"ops", "b"}, [][]string{dots, lists, {"@boss"}}},
		{
			"many://tok/a?phones=${V}",
			[]string{"15551234567", "+1 555 123 4567"},
			[][]string{{"15551234567,15557654321", "15551234567;15557654321"}},
		},
		{"many://tok/a?mode=${V}", []string{"each", "post"}, [][]string{{"none", "each,post", ".."}}},
		{"many://tok/a?count=${V}", []string{"7"}, [][]string{{"99", "7,8"}}},
		{"many://tok/a?level=${V}&mode=${V}", nil, [][]string{{"x"}}},
		{"probe://h/tok?+X-A=${V}", []string{"ops", "a, b", "..", "a;b", ""}, nil},
		{"probe://h/tok?+X-A=a${V}&+X-B=b", []string{"ops", "&+X-B=c", "a=b"}, nil},
	} {
		v := VariableURL{URL: tt.url, Variables: []Variable{{Name: "V"}}}
		parse := func(url string) (*Destination, error) { return Parse(url, nil) }
		for _, value := range tt.good {
			d, err := v.Destination(map[string]string{"v": value}, parse)
			if err != nil {
				t.Errorf("%s with %q: %v", tt.url, value, err)
				continue
			}
			d.Close()
		}
		for _, values := range tt.refused {
			for _, value := range values {
				if d, err := v.Destination(map[string]string{"v": value}, parse); err == nil {
					t.Errorf("%s with %q: %s", tt.url, value, d.URL())
				} else if secret := "victim"; strings.Contains(err.Error(), secret) {
					t.Errorf("%s with %q: %v", tt.url, value, err)
				}
			}
		}
	}
	// The values of the operator may be lists.
	all := "a,b"
	v := VariableURL{URL: "many://tok/${ALL}", Variables: []Variable{{Name: "ALL", Default: &all}}}
	if d, err := v.Destination(nil, func(url string) (*Destination, error) { return Parse(url, nil) }); err != nil ||
		len(d.service.(*probe).targets) != 2 {
		t.Errorf("a default: %v", err)
	}
	if _, err := v.Destination(map[string]string{"all": "a,b"},
		func(url string) (*Destination, error) { return Parse(url, nil) }); !errors.Is(err, errBadValue) {
		t.Errorf("a value in place of the default: %v", err)
	}
}
