package block

import (
	"math"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestRead checks the values that a block sets, and the error for each mistake.
func TestRead(t *testing.T) {
	type values struct {
		on      *bool
		size    int64
		timeout caddy.Duration
		count   int
		words   []string
		inner   int
	}
	read := func(text string, optional bool) (v values, err error) {
		d := caddyfile.NewTestDispenser(text)
		d.Next()
		known := Options{
			"page":    {Usage: "page on|off", Min: 1, Max: 1, Line: OnOff(&v.on)},
			"size":    {Usage: "size <size>", Min: 1, Max: 1, Line: Size(&v.size)},
			"timeout": {Usage: "timeout <duration>", Min: 1, Max: 1, Line: Duration(&v.timeout)},
			"count":   {Usage: "count <n>", Min: 1, Max: 1, Line: Number(&v.count, 1, 9)},
			"words": {Usage: "words <word...>", Min: 1, Max: math.MaxInt, Repeat: true, At: func(_ *caddyfile.Dispenser, args []string) error {
				v.words = append(v.words, args...)
				return nil
			}},
			"inner": {Usage: "inner { … }", Block: func(d *caddyfile.Dispenser, _ []string) error {
				return Read(d, "inner", Options{"n": {Usage: "n <n>", Min: 1, Max: 1, Line: Number(&v.inner, 0, 5)}})
			}},
		}
		if optional {
			return v, ReadOptional(d, "x", known)
		}
		return v, Read(d, "x", known)
	}
	v, err := read("x {\npage off\nsize 8MiB\ntimeout 2m\ncount 3\nwords a b\nwords c\ninner {\nn 4\n}\n}", false)
	if err != nil || v.on == nil || *v.on || v.size != 8<<20 || v.timeout != caddy.Duration(120e9) ||
		v.count != 3 || strings.Join(v.words, " ") != "a b c" || v.inner != 4 {
		t.Errorf("%+v, %v", v, err)
	}
	for text, want := range map[string]string{
		"x":                             "x needs a block with at least one of count, inner, page, size, timeout, words",
		"x {\n}":                        "x needs a block",
		"x {\ninner {\n}\n}":            "inner needs a block with at least one of n",
		"x {\npage on\npage on\n}":      "page occurs twice in x",
		"x {\npage maybe\n}":            "page: it must be on or off",
		"x {\npage\n}":                  "wrong number of arguments; expected page on|off",
		"x {\npage on {\n}\n}":          "page takes no block",
		"x {\nsize 0\n}":                "size: it must be a size above 0",
		"x {\ntimeout -1s\n}":           "timeout: it must be a duration above 0",
		"x {\ncount 10\n}":              "count: it must be a whole number from 1 to 9",
		"x {\npgae on\n}":               `unknown subdirective "pgae" in x; you may mean page`,
		"x {\nother on\n}":              `unknown subdirective "other" in x; is a } missing above?`,
		"x {\nrespond ok\n}":            `unknown subdirective "respond" in x; it is a directive of Caddy`,
		"x {\ndiscord://id/secret a\n}": "unknown subdirective in x; is",
	} {
		if _, err := read(text, false); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"x", "x {\n}"} {
		if _, err := read(text, true); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
