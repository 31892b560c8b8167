package source

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// textFunctions are the functions of templates that read and make texts.
type textFunctions struct{ *meter }

// all returns the functions by name.
func (t textFunctions) all() map[string]any {
	return map[string]any{
		"_print":     func(v any) (string, error) { return t.text(v) },
		"print":      t.print,
		"println":    func(args ...any) (string, error) { s, err := t.print(args...); return s + "\n", err },
		"printf":     t.printf,
		"html":       func(v any) (string, error) { return t.chargeResult(t.mapText(v, template.HTMLEscapeString)) },
		"urlquery":   func(v any) (string, error) { return t.chargeResult(t.mapText(v, url.QueryEscape)) },
		"capitalize": func(v any) (string, error) { return t.mapText(v, capitalize) },
		"contains":   t.textTest(strings.Contains),
		"cut":        t.cut,
		"hasPrefix":  t.textTest(strings.HasPrefix),
		"hasSuffix":  t.textTest(strings.HasSuffix),
		"join":       t.join,
		"line":       func(v any) (string, error) { return t.mapText(v, firstLine) },
		"lower":      func(v any) (string, error) { return t.mapText(v, strings.ToLower) },
		"plain":      t.plain,
		"replace":    t.replace,
		"split":      t.split,
		"trim":       func(v any) (string, error) { return t.mapText(v, strings.TrimSpace) },
		"upper":      func(v any) (string, error) { return t.mapText(v, strings.ToUpper) },
	}
}

// mapText returns f of v as text.
func (t textFunctions) mapText(v any, f func(string) string) (string, error) {
	s, err := t.text(v)
	if err != nil {
		return "", err
	}
	return f(s), nil
}

// textTest returns a template function of a part and a text that reports whether f holds for them.
func (t textFunctions) textTest(f func(s, part string) bool) func(part, v any) (bool, error) {
	return func(part, v any) (bool, error) {
		s, err := t.texts(v, part)
		if err != nil {
			return false, err
		}
		return f(s[0], s[1]), nil
	}
}

func (t textFunctions) print(args ...any) (string, error) {
	var b strings.Builder
	for _, a := range args {
		s, err := t.text(a)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), t.charge(0)
}

// formatVerb matches a verb of printf with its width and precision.
var formatVerb = lazyregexp.New(`%[-+# 0]*(\*|\d*)(?:\.(\*|\d*))?(\[)?.`)

// maxWidth is the maximum width and precision in printf.
const maxWidth = 100

func (t textFunctions) printf(format any, args ...any) (string, error) {
	f, err := t.text(format)
	if err != nil {
		return "", err
	}
	longest := 0
	for i, a := range args {
		switch a.(type) {
		case string, bool, int, int64, float64:
		default:
			if args[i], err = t.text(a); err != nil {
				return "", err
			}
		}
		longest = max(longest, payload.Size(args[i]))
	}
	if err := t.charge(16 * len(f)); err != nil { // for the search for verbs
		return "", err
	}
	verbs := formatVerb.FindAllStringSubmatch(f, -1)
	if err := t.charge(len(verbs) * (longest*4 + maxWidth)); err != nil {
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

func (t textFunctions) cut(n, v any) (string, error) {
	return t.mapText(v, func(s string) string {
		if utf8.RuneCountInString(s) <= payload.Int(n) {
			return s
		}
		return strings.TrimSpace(string([]rune(s)[:max(payload.Int(n)-1, 0)])) + "…"
	})
}

func (t textFunctions) join(separator, v any) (string, error) {
	var parts []string
	switch v := v.(type) {
	case []string:
		parts = v
	case []any:
		var err error
		if parts, err = t.texts(v...); err != nil {
			return "", err
		}
	default:
		return t.text(v)
	}
	s, err := t.text(separator)
	if err != nil {
		return "", err
	}
	if err := t.charge(len(s)*len(parts) + payload.Size(parts)); err != nil {
		return "", err
	}
	return strings.Join(parts, s), nil
}

func (t textFunctions) split(separator, v any) (any, error) {
	s, err := t.text(v)
	if err != nil || s == "" {
		return []string(nil), err
	}
	sep, err := t.text(separator)
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, sep) + 1
	if err := t.charge(16 * n); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), nil
}

func (t textFunctions) plain(v any) (string, error) {
	s, err := t.text(v)
	if err != nil {
		return "", err
	}
	if err := t.charge(16 * len(s)); err != nil {
		return "", err
	}
	return markup.Convert(s, markup.HTML, markup.Text), nil
}

func (t textFunctions) replace(old, replacement, v any) (string, error) {
	s, err := t.text(v)
	if err != nil {
		return "", err
	}
	both, err := t.texts(old, replacement)
	if err != nil {
		return "", err
	}
	from, to := both[0], both[1]
	if err := t.charge(strings.Count(s, from)*len(to) + len(s)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, from, to), nil
}
