package source

import (
	"fmt"
	"html/template"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/charset"
)

// functionNames are the functions of templates in alphabetical order, without the functions of
// text/template: and, or, not, eq, ne, lt, le, gt, ge, index, len, print, printf,
// println, html and urlquery.
var functionNames = []string{
	"capitalize", "contains", "cut", "date", "default", "duration", "first", "fromJSON", "hasPrefix", "hasSuffix", "header", "join",
	"json", "line",
	"lower", "more", "pairs", "pick", "plain", "replace", "size", "split", "trim", "type", "upper", "where", "without",
}

// function is a function of templates. Its arguments are on the stack of the run, so it does not keep them.
type function struct {
	least, most int // number of arguments
	call        func(x *run, args []any) (any, error)
}

// unlimited stands for any number of arguments.
const unlimited = 1 << 20

// takes says how many arguments the function takes.
func (f function) takes() string {
	switch {
	case f.least == f.most:
		return strconv.Itoa(f.least)
	case f.most == unlimited:
		return fmt.Sprintf("%d or more", f.least)
	}
	return fmt.Sprintf("%d to %d", f.least, f.most)
}

// one, two and three make functions of that many arguments.
func one[T any](f func(*run, any) (T, error)) function {
	return function{1, 1, func(x *run, a []any) (any, error) { return f(x, a[0]) }}
}

func two[T any](f func(*run, any, any) (T, error)) function {
	return function{2, 2, func(x *run, a []any) (any, error) { return f(x, a[0], a[1]) }}
}

func three[T any](f func(*run, any, any, any) (T, error)) function {
	return function{3, 3, func(x *run, a []any) (any, error) { return f(x, a[0], a[1], a[2]) }}
}

// several makes a function of any number of arguments, and oneAndMore one of at least one.
func several[T any](f func(*run, ...any) (T, error)) function {
	return function{0, unlimited, func(x *run, a []any) (any, error) { return f(x, a...) }}
}

func oneAndMore[T any](f func(*run, any, ...any) (T, error)) function {
	return function{1, unlimited, func(x *run, a []any) (any, error) { return f(x, a[0], a[1:]...) }}
}

// mapped makes a function that returns f of a text.
func mapped(f func(string) string) function {
	return one(func(x *run, v any) (string, error) { return x.mapText(v, f) })
}

// escaped is like mapped, for a function whose result can be much longer.
func escaped(f func(string) string) function {
	return one(func(x *run, v any) (string, error) { return x.chargeResult(x.mapText(v, f)) })
}

// tested makes a function of a part and a text that reports whether f holds for them.
func tested(f func(s, part string) bool) function {
	return two(func(x *run, part, v any) (bool, error) {
		s, err := x.text(v)
		if err != nil {
			return false, err
		}
		p, err := x.text(part)
		return err == nil && f(s, p), err
	})
}

// compared makes a function that compares two values.
func compared(f func(n int) bool) function {
	return two(func(x *run, a, b any) (bool, error) { n, err := x.compare(a, b); return f(n), err })
}

// functions are the functions of templates. They accept values of any type and fail only if the
// run exceeds a limit or is stopped, or if a format of printf is not allowed. Each charges what it
// reads, so that the work on a large value is bounded.
var functions = map[string]function{
	"and": {1, unlimited, nil}, // see [compiler.function]
	"or":  {1, unlimited, nil},
	"not": one(func(x *run, v any) (bool, error) { return !isTrue(v), x.charge(0) }),

	"eq": oneAndMore((*run).equal),
	"ne": two(func(x *run, a, b any) (bool, error) { ok, err := x.equal(a, b); return !ok, err }),
	"lt": compared(func(n int) bool { return n < 0 }),
	"le": compared(func(n int) bool { return n <= 0 }),
	"gt": compared(func(n int) bool { return n > 0 }),
	"ge": compared(func(n int) bool { return n >= 0 }),

	"date":     two((*run).date),
	"default":  two((*run).valueOr),
	"duration": one((*run).duration),
	"fromJSON": one((*run).fromJSON),
	"header":   one((*run).headerValue),
	"json":     one((*run).json),
	"size":     one((*run).fileSize),
	"type":     one((*run).typeOf),

	"first": two(func(x *run, n, v any) (any, error) { return firstItems(v, payload.Int(n)), x.charge(0) }),
	"index": oneAndMore((*run).index),
	"len":   one((*run).length),
	"more": two(func(x *run, n, v any) (int, error) {
		have, err := x.length(v)
		return max(have-max(payload.Int(n), 0), 0), err
	}),
	"pairs":   oneAndMore((*run).pairs),
	"pick":    oneAndMore((*run).pick),
	"where":   three(func(x *run, name, value, list any) (any, error) { return x.filter(name, value, list, true) }),
	"without": three(func(x *run, name, value, list any) (any, error) { return x.filter(name, value, list, false) }),

	"capitalize": mapped(capitalize),
	"contains":   tested(strings.Contains),
	"cut":        two((*run).cut),
	"hasPrefix":  tested(strings.HasPrefix),
	"hasSuffix":  tested(strings.HasSuffix),
	"html":       escaped(template.HTMLEscapeString),
	"join":       two((*run).join),
	"line":       mapped(firstLine),
	"lower":      mapped(strings.ToLower),
	"plain":      one((*run).plain),
	"print":      several((*run).print),
	"printf":     oneAndMore((*run).printf),
	"println":    several(func(x *run, args ...any) (string, error) { s, err := x.print(args...); return s + "\n", err }),
	"replace":    three((*run).replace),
	"split":      two((*run).split),
	"trim":       mapped(strings.TrimSpace),
	"upper":      mapped(strings.ToUpper),
	"urlquery":   escaped(url.QueryEscape),
}

// headerValue returns a header of the request, or "" for a header with credentials.
func (x *run) headerValue(name any) (string, error) {
	s, err := x.text(name)
	if err != nil {
		return "", err
	}
	key := textproto.CanonicalMIMEHeaderKey(s)
	switch key {
	case "Authorization", "Cookie", "Proxy-Authorization":
		return "", nil
	}
	if err := x.charge(payload.Size(x.header[key])); err != nil {
		return "", err
	}
	value, _ := charset.DecodeHeader(strings.Join(x.header[key], ", "))
	return value, nil
}
