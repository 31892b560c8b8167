package source

import (
	"errors"
	"fmt"
	"strconv"
	"text/template/parse"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// templateTimeout bounds the time of all templates of one payload. It ends runs that are expensive
// within the other limits.
const templateTimeout = 5 * time.Second

// Template is a text/template of Go with these differences, which make it safe for
// payloads of other programs:
//
//   - A missing field, or a field of a value that is not an object, is empty.
//   - Numbers, arrays and objects are printed as in JSON.
//   - The rounds of range, the output, and the work of functions are limited, and a run
//     ends with its context.
//   - The functions take values of any type. call, slice and js are not available.
type Template struct {
	name string
	main *block
}

// TemplateError is returned when a template cannot be parsed or executed.
type TemplateError struct {
	Name         string // name of the template, such as body
	Line, Column int    // both begin at 1; Column is 0 if unknown
	Err          error
}

// Error implements error.
func (e *TemplateError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("the template %s, line %d: %v", e.Name, e.Line, e.Err)
	}
	return fmt.Sprintf("the template %s, line %d, column %d: %v", e.Name, e.Line, e.Column, e.Err)
}

// Unwrap returns e.Err.
func (e *TemplateError) Unwrap() error { return e.Err }

// parseError matches the errors of text/template/parse.
var parseError = lazyregexp.New(`(?s)^template: [^:]*:(\d+)(?::(\d+))?: (.*)$`)

// wrapError returns an error of text/template/parse as a TemplateError.
func wrapError(name string, err error) error {
	m := parseError.FindStringSubmatch(err.Error())
	if m == nil {
		return &TemplateError{Name: name, Line: 1, Err: err}
	}
	e := &TemplateError{Name: name, Err: errors.New(m[3])}
	e.Line, _ = strconv.Atoi(m[1])
	if m[2] != "" {
		e.Column, _ = strconv.Atoi(m[2])
		e.Column++
	}
	return e
}

// notAvailable are functions of text/template that templates of sources do not have.
var notAvailable = map[string]any{"call": true, "slice": true, "js": true}

// ParseTemplate parses a template. name is for errors. The error is a
// [*TemplateError].
func ParseTemplate(name, text string) (*Template, error) {
	known := map[string]any{}
	for name := range functions {
		known[name] = true
	}
	trees, err := parse.Parse(name, text, "", "", known, notAvailable)
	if err != nil {
		return nil, wrapError(name, err)
	}
	main, err := compile(trees, name)
	if err != nil {
		return nil, err
	}
	return &Template{name, main}, nil
}

// leftOver matches the rest of {{$x}} or {{$x := …}} in a Caddyfile after Caddy has replaced {$x}
// or {$x := …} as an environment variable.
var leftOver = lazyregexp.New(`(?:^|[^{])\{\s*(?:\}|=)`)

// CheckLeftOver returns an error if Caddy has replaced a variable of the template text in a
// Caddyfile as an environment variable.
func CheckLeftOver(text string) error {
	if !leftOver.MatchString(text) {
		return nil
	}
	return errors.New("a variable of the template is lost, because Caddy takes {$x} for an environment variable; write a space before the " +
		"dollar sign, as in {{ $x := .job }}{{ $x }}, or put the template into a file")
}
