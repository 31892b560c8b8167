package source

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"math/bits"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// functionNames are the functions of templates, without the functions of
// text/template: and, or, not, eq, ne, lt, le, gt, ge, index, len, print, printf,
// println, html and urlquery.
var functionNames = []string{
	"capitalize", "contains", "cut", "date", "default", "duration", "first", "fromJSON", "hasPrefix", "hasSuffix", "header", "join", "json", "line",
	"lower", "more", "pairs", "pick", "plain", "replace", "size", "split", "trim", "type", "upper", "where", "without",
}

// FunctionNames returns the names of the functions of templates in alphabetical
// order, without the functions of text/template.
func FunctionNames() []string { return slices.Clone(functionNames) }

// functions returns all functions of templates. They take values of any type. They
// fail only if the run exceeds a limit or is stopped, or if a format of printf is not
// allowed. Each charges what it reads, so that a large value is not read without end.
func (r *run) functions() map[string]any {
	return map[string]any{
		"_step":  r.step,
		"_get":   func(v any, names ...string) (any, error) { return payload.Get(v, names...), r.charge(0) },
		"_items": r.rangeItems,
		"_print": func(v any) (string, error) { return r.text(v) },

		// Functions of text/template, changed to take values of any type. and, or and
		// not read nothing of a value but its length, and stay as they are.
		"eq":       r.equal,
		"ne":       func(a, b any) (bool, error) { ok, err := r.equal(a, b); return !ok, err },
		"lt":       func(a, b any) (bool, error) { n, err := r.compare(a, b); return n < 0, err },
		"le":       func(a, b any) (bool, error) { n, err := r.compare(a, b); return n <= 0, err },
		"gt":       func(a, b any) (bool, error) { n, err := r.compare(a, b); return n > 0, err },
		"ge":       func(a, b any) (bool, error) { n, err := r.compare(a, b); return n >= 0, err },
		"index":    r.index,
		"len":      r.length,
		"print":    r.print,
		"println":  func(args ...any) (string, error) { s, err := r.print(args...); return s + "\n", err },
		"printf":   r.printf,
		"html":     func(v any) (string, error) { return r.chargeResult(r.mapText(v, template.HTMLEscapeString)) },
		"urlquery": func(v any) (string, error) { return r.chargeResult(r.mapText(v, url.QueryEscape)) },

		"capitalize": func(v any) (string, error) { return r.mapText(v, capitalize) },
		"contains":   r.textTest(strings.Contains),
		"cut":        r.cut,
		"date":       r.date,
		"default":    r.valueOr,
		"duration":   r.duration,
		"first":      func(n, v any) (any, error) { return firstItems(items(v), payload.Int(n)), r.charge(0) },
		"fromJSON":   r.fromJSON,
		"hasPrefix":  r.textTest(strings.HasPrefix),
		"hasSuffix":  r.textTest(strings.HasSuffix),
		"header":     r.headerValue,
		"join":       r.join,
		"json":       r.json,
		"line":       func(v any) (string, error) { return r.mapText(v, firstLine) },
		"lower":      func(v any) (string, error) { return r.mapText(v, strings.ToLower) },
		"more":       func(n, v any) (int, error) { have, err := r.length(v); return max(have-max(payload.Int(n), 0), 0), err },
		"pairs":      r.pairs,
		"pick":       r.pick,
		"plain":      r.plain,
		"replace":    r.replace,
		"size":       r.fileSize,
		"split":      r.split,
		"trim":       func(v any) (string, error) { return r.mapText(v, strings.TrimSpace) },
		"type":       r.typeOf,
		"upper":      func(v any) (string, error) { return r.mapText(v, strings.ToUpper) },
		"where":      func(name, value, list any) (any, error) { return r.filter(name, value, list, true) },
		"without":    func(name, value, list any) (any, error) { return r.filter(name, value, list, false) },
	}
}

// jsonWork is what a byte of JSON costs to encode or decode, in bytes of other work.
const jsonWork = 8

// text returns v as text and charges its size.
func (r *run) text(v any) (string, error) {
	n := payload.Size(v)
	switch v.(type) {
	case []any, []string, map[string]any:
		n *= jsonWork
	}
	if err := r.charge(n); err != nil {
		return "", err
	}
	return payload.Text(v), nil
}

// texts returns values as texts and charges their sizes.
func (r *run) texts(values ...any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		var err error
		if out[i], err = r.text(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *run) json(v any) (string, error) {
	if err := r.charge(jsonWork * payload.Size(v)); err != nil {
		return "", err
	}
	return payload.Encode(v), nil
}

// mapText returns f of v as text.
func (r *run) mapText(v any, f func(string) string) (string, error) {
	s, err := r.text(v)
	if err != nil {
		return "", err
	}
	return f(s), nil
}

// chargeResult charges the size of a text that a function has made.
func (r *run) chargeResult(s string, err error) (string, error) {
	if err == nil {
		err = r.charge(len(s))
	}
	return s, err
}

// textTest returns a template function that reports whether f holds for the text in
// its last argument and the part in its first.
func (r *run) textTest(f func(s, part string) bool) func(part, v any) (bool, error) {
	return func(part, v any) (bool, error) {
		s, err := r.texts(v, part)
		if err != nil {
			return false, err
		}
		return f(s[0], s[1]), nil
	}
}

// rangeItems returns what range iterates over. An object is sorted by its names, which
// is charged. The rounds are charged as steps.
func (r *run) rangeItems(v any) (any, error) {
	list := items(v)
	if m, ok := list.(map[string]any); ok {
		return list, r.charge(sortWork(m))
	}
	return list, r.charge(0)
}

// sortWork returns the work to sort an object by its names.
func sortWork(m map[string]any) int {
	n := 0
	for name := range m {
		n += len(name) + 32
	}
	return n * bits.Len(uint(len(m)))
}

// items returns v if range can iterate over it: an array, an object, or an integer
// of the template. It returns an empty list for any other value.
func items(v any) any {
	switch v := v.(type) {
	case []any, []string, map[string]any, int:
		return v
	}
	return []any(nil)
}

// length returns the number of characters, elements or members of v, or 0.
func (r *run) length(v any) (int, error) {
	if s, ok := v.(string); ok {
		if err := r.charge(len(s)); err != nil {
			return 0, err
		}
		return utf8.RuneCountInString(s), nil
	}
	return payload.Len(v), r.charge(0)
}

// firstItems returns the first n elements of an array.
func firstItems(v any, n int) any {
	n = max(n, 0)
	switch v := v.(type) {
	case []any:
		return v[:min(n, len(v))]
	case []string:
		return v[:min(n, len(v))]
	}
	return []any(nil)
}

// index returns the value at the keys in nested arrays and objects, or nil.
func (r *run) index(v any, keys ...any) (any, error) {
	if err := r.charge(0); err != nil {
		return nil, err
	}
	for _, key := range keys {
		switch list := v.(type) {
		case []any:
			n := payload.Int(key)
			if _, isText := key.(string); isText || n < 0 || n >= len(list) {
				return nil, nil
			}
			v = list[n]
		case []string:
			n := payload.Int(key)
			if n < 0 || n >= len(list) {
				return nil, nil
			}
			v = list[n]
		case map[string]any:
			name, err := r.text(key)
			if err != nil {
				return nil, err
			}
			v = list[name]
		default:
			return nil, nil
		}
	}
	return v, nil
}

// valueOr is the function default of templates.
func (r *run) valueOr(other, v any) (any, error) {
	read, empty := payload.IsEmpty(v)
	if err := r.charge(read); err != nil || !empty {
		return v, err
	}
	return other, nil
}

// compare compares a and b by value if one is a number and the other can be one, and
// otherwise as text.
func (r *run) compare(a, b any) (int, error) {
	if payload.IsNumber(a) || payload.IsNumber(b) {
		x, ok1 := payload.Float(a)
		y, ok2 := payload.Float(b)
		if ok1 && ok2 {
			return cmp.Compare(x, y), r.charge(0)
		}
	}
	s, ok1 := a.(string)
	t, ok2 := b.(string)
	if ok1 && ok2 {
		return strings.Compare(s, t), r.charge(min(len(s), len(t)))
	}
	both, err := r.texts(a, b)
	if err != nil {
		return 0, err
	}
	return strings.Compare(both[0], both[1]), nil
}

// equal reports whether a equals one of the others.
func (r *run) equal(a any, others ...any) (bool, error) {
	if err := r.charge(0); err != nil {
		return false, err
	}
	for _, b := range others {
		if n, err := r.compare(a, b); err != nil || n == 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func (r *run) print(args ...any) (string, error) {
	var b strings.Builder
	for _, a := range args {
		s, err := r.text(a)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), r.charge(0)
}

// formatVerb matches a verb of printf with its width and precision.
var formatVerb = lazyregexp.New(`%[-+# 0]*(\*|\d*)(?:\.(\*|\d*))?(\[)?.`)

// maxWidth is the maximum width and precision in printf.
const maxWidth = 100

func (r *run) printf(format any, args ...any) (string, error) {
	f, err := r.text(format)
	if err != nil {
		return "", err
	}
	longest := 0
	for i, a := range args {
		switch a.(type) {
		case string, bool, int, int64, float64:
		default:
			if args[i], err = r.text(a); err != nil {
				return "", err
			}
		}
		longest = max(longest, payload.Size(args[i]))
	}
	if err := r.charge(16 * len(f)); err != nil { // of the search for verbs
		return "", err
	}
	verbs := formatVerb.FindAllStringSubmatch(f, -1)
	if err := r.charge(len(verbs) * (longest*4 + maxWidth)); err != nil {
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

func (r *run) cut(n, v any) (string, error) {
	return r.mapText(v, func(s string) string {
		if utf8.RuneCountInString(s) <= payload.Int(n) {
			return s
		}
		return strings.TrimSpace(string([]rune(s)[:max(payload.Int(n)-1, 0)])) + "…"
	})
}

func (r *run) date(layout, v any) (string, error) {
	t, ok := toTime(v)
	if !ok {
		return r.text(v)
	}
	form, err := r.text(layout)
	if err != nil || t.Year() <= 1 {
		return "", err
	}
	return r.chargeResult(t.Format(form), nil)
}

// maxTime is the maximum length of a text that is read as a time, in bytes.
const maxTime = 400

// toTime parses a time in RFC 3339 or a similar form, or a number of seconds or
// milliseconds since 1970.
func toTime(v any) (time.Time, bool) {
	if payload.IsNumber(v) {
		f, _ := payload.Float(v)
		if math.Abs(f) > 1e11 { // the year 5138 in seconds
			f /= 1000
		}
		if math.Abs(f) > 1e11 {
			return time.Time{}, false
		}
		return time.Unix(int64(f), 0).UTC(), true
	}
	s, ok := v.(string)
	if !ok || len(s) > maxTime {
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700 MST"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// duration returns a number of seconds as text with its two largest units.
func (r *run) duration(v any) (string, error) {
	seconds, ok := payload.Float(v)
	if !ok || math.Abs(seconds) > 1e12 {
		return r.text(v)
	}
	return formatSeconds(seconds), r.charge(0)
}

func formatSeconds(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	if seconds < 60 {
		return sign + strconv.FormatFloat(math.Round(seconds*10)/10, 'f', -1, 64) + " s"
	}
	var out []string
	rest := int64(seconds)
	for _, u := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}} {
		n := rest / u.seconds
		rest %= u.seconds
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, u.name))
		} else if len(out) > 0 {
			break
		}
		if len(out) == 2 {
			break
		}
	}
	return sign + strings.Join(out, " ")
}

func (r *run) fileSize(v any) (string, error) {
	n, ok := payload.Float(v)
	if !ok || n < 0 || n >= math.MaxInt64 {
		return r.text(v)
	}
	return humanize.Bytes(uint64(n)), r.charge(0)
}

func (r *run) fromJSON(v any) (any, error) {
	s, err := r.text(v)
	if err != nil {
		return nil, err
	}
	if err := r.charge(jsonWork * len(s)); err != nil {
		return nil, err
	}
	out, err := payload.Decode([]byte(s))
	if err != nil {
		return nil, nil // invalid JSON is empty, like a missing field
	}
	return out, nil
}

// headerValue returns a header of the request, or "" for a header with credentials.
func (r *run) headerValue(name any) (string, error) {
	s, err := r.text(name)
	if err != nil {
		return "", err
	}
	key := textproto.CanonicalMIMEHeaderKey(s)
	switch key {
	case "Authorization", "Cookie", "Proxy-Authorization":
		return "", nil
	}
	if err := r.charge(payload.Size(r.header[key])); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(strings.Join(r.header[key], ", "), "\uFFFD"), nil
}

func (r *run) join(separator, v any) (string, error) {
	var parts []string
	switch v := v.(type) {
	case []string:
		parts = v
	case []any:
		var err error
		if parts, err = r.texts(v...); err != nil {
			return "", err
		}
	default:
		return r.text(v)
	}
	s, err := r.text(separator)
	if err != nil {
		return "", err
	}
	if err := r.charge(len(s)*len(parts) + payload.Size(parts)); err != nil {
		return "", err
	}
	return strings.Join(parts, s), nil
}

func (r *run) split(separator, v any) (any, error) {
	s, err := r.text(v)
	if err != nil || s == "" {
		return []string(nil), err
	}
	sep, err := r.text(separator)
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, sep) + 1
	if err := r.charge(16 * n); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), nil
}

// pick returns the first member of an object among names that is not empty, or nil.
func (r *run) pick(v any, names ...any) (any, error) {
	keys, err := r.texts(names...)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		member := payload.Get(v, key)
		read, empty := payload.IsEmpty(member)
		if err := r.charge(read); err != nil {
			return nil, err
		}
		if !empty {
			return member, nil
		}
	}
	return nil, r.charge(0)
}

// pairs returns the members of an object as texts "name: value" in alphabetical
// order, without the members in names. An object among names stands for the names of
// its members.
func (r *run) pairs(v any, names ...any) ([]string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, r.charge(0)
	}
	if err := r.charge(sortWork(m)); err != nil {
		return nil, err
	}
	leave := map[string]bool{}
	for _, name := range names {
		if others, ok := name.(map[string]any); ok {
			if err := r.charge(sortWork(others)); err != nil {
				return nil, err
			}
			for name := range others {
				leave[name] = true
			}
			continue
		}
		s, err := r.text(name)
		if err != nil {
			return nil, err
		}
		leave[s] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if leave[name] || m[name] == nil {
			continue
		}
		value, err := r.text(m[name])
		if err != nil {
			return nil, err
		}
		out = append(out, name+": "+value)
	}
	return out, nil
}

func (r *run) plain(v any) (string, error) {
	s, err := r.text(v)
	if err != nil {
		return "", err
	}
	if err := r.charge(16 * len(s)); err != nil {
		return "", err
	}
	return markup.Convert(s, markup.HTML, markup.Text), nil
}

func (r *run) replace(old, replacement, v any) (string, error) {
	s, err := r.text(v)
	if err != nil {
		return "", err
	}
	both, err := r.texts(old, replacement)
	if err != nil {
		return "", err
	}
	from, to := both[0], both[1]
	if err := r.charge(strings.Count(s, from)*len(to) + len(s)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, from, to), nil
}

// typeOf returns the type for a common word of alerting, or "" for an unknown word.
func (r *run) typeOf(v any) (string, error) {
	word, err := r.text(v)
	if err != nil {
		return "", err
	}
	if t, known := notifier.TypeOfWord(word); known && strings.TrimSpace(word) != "" {
		return string(t), nil
	}
	return "", nil
}

// filter returns the elements of a list whose member name equals value or, if want is
// false, the other elements.
func (r *run) filter(name, value, list any, want bool) (any, error) {
	all, ok := list.([]any)
	if !ok {
		return []any(nil), r.charge(0)
	}
	key, err := r.text(name)
	if err != nil {
		return nil, err
	}
	if err := r.charge((16 + len(key)) * len(all)); err != nil {
		return nil, err
	}
	var out []any
	for _, item := range all {
		same, err := r.equal(payload.Get(item, key), value)
		if err != nil {
			return nil, err
		}
		if same == want {
			out = append(out, item)
		}
	}
	return out, nil
}
