package source

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// mapText returns f of v as text.
func (x *run) mapText(v any, f func(string) string) (string, error) {
	s, err := x.text(v)
	if err != nil {
		return "", err
	}
	return f(s), nil
}

func (x *run) print(args ...any) (string, error) {
	var b strings.Builder
	for _, a := range args {
		s, err := x.text(a)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), x.charge(0)
}

// formatVerb matches a verb of printf with its width and precision.
var formatVerb = lazyregexp.New(`%[-+# 0]*(\*|\d*)(?:\.(\*|\d*))?(\[)?.`)

// maxWidth is the maximum width and precision in printf.
const maxWidth = 100

func (x *run) printf(format any, args ...any) (string, error) {
	f, err := x.text(format)
	if err != nil {
		return "", err
	}
	longest := 0
	for i, a := range args {
		switch a.(type) {
		case string, bool, int, int64, float64:
		default:
			if args[i], err = x.text(a); err != nil {
				return "", err
			}
		}
		longest = max(longest, payload.Size(args[i]))
	}
	if err := x.charge(16 * len(f)); err != nil { // for the search for verbs
		return "", err
	}
	verbs := formatVerb.FindAllStringSubmatch(f, -1)
	if err := x.charge(len(verbs) * (longest*4 + maxWidth)); err != nil {
		return "", err
	}
	for _, m := range verbs {
		for _, width := range m[1:3] {
			if n, err := strconv.Atoi(cmp.Or(width, "0")); err != nil || n > maxWidth {
				return "", fmt.Errorf("a width or precision of printf is larger than %d or not a number", maxWidth)
			}
		}
		if m[3] != "" {
			return "", fmt.Errorf("printf takes no argument indexes, such as %%[1]s")
		}
	}
	return fmt.Sprintf(f, args...), nil
}

func capitalize(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[n:]
}

// firstLine returns the first line of s that is not empty.
func firstLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

func (x *run) cut(n, v any) (string, error) {
	return x.mapText(v, func(s string) string {
		if utf8.RuneCountInString(s) <= payload.Int(n) {
			return s
		}
		return strings.TrimSpace(string([]rune(s)[:max(payload.Int(n)-1, 0)])) + "…"
	})
}

func (x *run) join(separator, v any) (string, error) {
	var parts []string
	switch v := v.(type) {
	case []string:
		parts = v
	case []any:
		var err error
		if parts, err = x.texts(v...); err != nil {
			return "", err
		}
	default:
		return x.text(v)
	}
	s, err := x.text(separator)
	if err != nil {
		return "", err
	}
	if err := x.charge(len(s)*len(parts) + payload.Size(parts)); err != nil {
		return "", err
	}
	return strings.Join(parts, s), nil
}

func (x *run) split(separator, v any) (any, error) {
	s, err := x.text(v)
	if err != nil || s == "" {
		return []string(nil), err
	}
	sep, err := x.text(separator)
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, sep) + 1
	if err := x.charge(16 * n); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), nil
}

func (x *run) plain(v any) (string, error) {
	s, err := x.text(v)
	if err != nil {
		return "", err
	}
	if err := x.charge(16 * len(s)); err != nil {
		return "", err
	}
	return markup.Convert(s, markup.HTML, markup.Text), nil
}

func (x *run) replace(old, replacement, v any) (string, error) {
	s, err := x.text(v)
	if err != nil {
		return "", err
	}
	both, err := x.texts(old, replacement)
	if err != nil {
		return "", err
	}
	from, to := both[0], both[1]
	if err := x.charge(strings.Count(s, from)*len(to) + len(s)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, from, to), nil
}
