package source

import (
	"maps"
	"net/textproto"
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

// functions returns all functions of templates. They accept values of any type and fail only if the
// run exceeds a limit or is stopped, or if a format of printf is not allowed. Each charges what it
// reads, so that the work on a large value is bounded.
//
// They replace the functions of text/template, except and, or and not, which read only the length
// of a value.
func (r *run) functions() map[string]any {
	all := map[string]any{
		"_get":   func(v any, path int) (any, error) { return payload.Get(v, r.paths[path]...), r.charge(0) },
		"_text":  func(v any, path int) (string, error) { return r.text(payload.Get(v, r.paths[path]...)) },
		"_step":  r.step,
		"header": r.headerValue,
	}
	maps.Copy(all, textFunctions{&r.meter}.all())
	maps.Copy(all, listFunctions{&r.meter}.all())
	maps.Copy(all, valueFunctions{&r.meter}.all())
	return all
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
	value, _ := charset.DecodeHeader(strings.Join(r.header[key], ", "))
	return value, nil
}
