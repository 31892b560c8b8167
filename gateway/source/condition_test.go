package source

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// TestConditions checks the syntax of Format.Has.
func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		row, sent string
		want      bool
	}{
		{"a", `{"a":1}`, true},
		{"a", `{"a":null}`, true},
		{"a", `{"b":1}`, false},
		{"a|b", `{"b":1}`, true},
		{"a.b", `{"a":{"b":1}}`, true},
		{"a.b", `{"a":{"c":1}}`, false},
		{"a.b", `{"a":[{"b":1}]}`, false},
		{"a[].b", `{"a":[1,{"b":1}]}`, true},
		{"a[].b", `{"a":[]}`, false},
		{"a[].b", `{"a":{"b":1}}`, false},
		{"[].a", `[{"a":1}]`, true},
		{"a=x", `{"a":"x"}`, true},
		{"a=1", `{"a":1}`, true},
		{"a~x", `{"a":"x 4K"}`, true},
		{"a~x", `{"a":"4K-x"}`, true},
		{"a~x", `{"a":"an x of mine"}`, false},
		{"a~x", `{"b":"x"}`, false},
		{"a=x|b=y", `{"a":"y","b":"x"}`, false},
		{"a?", `{"a":1}`, true},
	} {
		data, err := payload.Decode([]byte(tt.sent))
		if err != nil {
			t.Fatal(err)
		}
		c := parseHas([]string{tt.row})[0]
		if got := c.holds(data); got != tt.want || c.optional != strings.HasSuffix(tt.row, "?") {
			t.Errorf("%s holds for %s: %v", tt.row, tt.sent, got)
		}
	}
}
