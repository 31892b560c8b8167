package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// runTemplate parses a template and executes it on a JSON payload.
func runTemplate(t testing.TB, text, sent string) (string, error) {
	t.Helper()
	tmpl, err := ParseTemplate("body", text)
	if err != nil {
		return "", err
	}
	data, err := payload.Decode([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl.Execute(t.Context(), data, http.Header{"X-Event": {"push"}, "Authorization": {"Bearer s3cret"}, "Cookie": {"a=s3cret"}})
}

func TestTemplates(t *testing.T) {
	for _, tt := range []struct{ text, payload, want string }{
		{`{{.a.b}}`, `{"a":{"b":"x"}}`, "x"},
		{`{{.a.b.c}}|{{.a}}|{{$.x.y}}`, `{"a":"text"}`, "|text|"},
		{`{{.}}`, `null`, ""},
		{`{{.a}} {{.b}} {{.c}} {{.d}}`, `{"a":12345678901,"b":1.5,"c":true,"d":1e9}`, "12345678901 1.5 true 1000000000"},
		{`{{.a}}`, `{"a":[1,{"b":"<"}]}`, `[1,{"b":"<"}]`},
		{`{{range .a}}{{.n}};{{end}}`, `{"a":[{"n":1},{"n":2},3,null]}`, "1;2;;;"},
		{`{{range .a}}x{{else}}none{{end}}`, `{"a":"text"}`, "none"},
		{`{{range $i, $v := .a}}{{$i}}={{$v.n}} {{end}}`, `{"a":[{"n":"x"}]}`, "0=x "},
		{`{{range $k, $v := .a}}{{$k}}={{$v}} {{end}}`, `{"a":{"z":1,"b":2}}`, "b=2 z=1 "},
		{`{{range 3}}.{{end}}`, `{}`, "..."},
		{`{{range .n}}.{{end}}`, `{"n":1000000000}`, ""},
		{`{{with .a}}{{.b}}{{else}}no{{end}}`, `{}`, "no"},
		{`{{(index .a 1).b}}|{{(index .a 5).b}}|{{index .a "x"}}|{{index .b "x y"}}`, `{"a":[0,{"b":"B"}],"b":{"x y":"Z"}}`, "B|||Z"},
		{`{{if eq .s 0}}zero{{end}}{{if eq .t "0"}}text{{end}}{{if eq .u 0}}missing{{end}}`, `{"s":0,"t":0}`, "zerotext"},
		{
			`{{eq .a "x" "y"}} {{ne .a "x"}} {{lt .n 10}} {{gt .n 10}} {{le "a" "b"}} {{ge .m 1}}`, `{"a":"y","n":9,"m":null}`,
			"true true true false true false",
		},
		{`{{if and .a (not .b)}}yes{{end}}{{or .b "other"}}`, `{"a":1}`, "yesother"},
		{`{{len .a}} {{len .b}} {{len .c}}`, `{"a":[1,2],"b":"äö"}`, "2 2 0"},
		{`{{printf "%5.1f|%-4s|%03d|%v" .f .s .n .o}}`, `{"f":1.25,"s":"ab","n":7,"o":{"a":1}}`, `  1.2|ab  |007|{"a":1}`},
		{`{{define "x"}}[{{.n}}]{{end}}{{template "x" .a}}{{template "x" .b}}`, `{"a":{"n":1}}`, "[1][]"},
		{`{{$x := .a.b}}{{$x}}{{$x = .c}}{{$x.d}}`, `{"a":{"b":1},"c":{"d":2}}`, "12"},
		{`{{html .a}} {{urlquery .a}}`, `{"a":"<a b>"}`, "&lt;a b&gt; %3Ca+b%3E"},
		{`{{header "x-event"}}{{header "Authorization"}}{{header "cookie"}}{{header "none"}}`, `{}`, "push"},
		{`{{.a | upper | printf "%s!"}}`, `{"a":"x"}`, "X!"},
		{`{{"{{.a}}"}}{{.b}}`, `{"b":"{{.c}}"}`, "{{.a}}{{.c}}"}, // a payload is not run as a template
	} {
		got, err := runTemplate(t, tt.text, tt.payload)
		if err != nil || got != tt.want {
			t.Errorf("%s of %s: %q, %v; want %q", tt.text, tt.payload, got, err, tt.want)
		}
	}
}

// TestLikeTextTemplate checks that templates mean what they mean to text/template, where both have the
// same functions.
func TestLikeTextTemplate(t *testing.T) {
	data := map[string]any{
		"s": "text", "e": "", "n": 3, "f": 1.5, "yes": true, "no": false, "none": nil,
		"l": []any{"a", "b", "c", "d"}, "empty": []any{}, "m": map[string]any{"b": 2, "a": 1, "deep": map[string]any{"x": "y"}},
		"rows": []any{map[string]any{"name": "one", "tags": []any{"x"}}, map[string]any{"name": "two", "tags": []any{"y", "z"}}},
	}
	for _, text := range []string{
		`{{/* a comment */}}a{{- " b " -}}  c`,
		`{{.s}} {{.n}} {{.f}} {{.yes}}`, `{{"\u00e9" }}{{` + "`raw\\n`" + `}}{{'a'}} {{0x1F}} {{1e3}} {{1.0}} {{-7}}`,
		`{{if .yes}}1{{else}}2{{end}}{{if .no}}3{{else if .s}}4{{else}}5{{end}}`, `{{if .e}}6{{else if .none}}7{{else}}8{{end}}`,
		`{{if .n}}n{{end}}{{if .empty}}e{{end}}{{if .m}}m{{end}}{{if .f}}f{{end}}`,
		`{{with .m.deep}}{{.x}}{{$.s}}{{else}}none{{end}}{{with .e}}{{.}}{{else with .s}}{{.}}{{end}}`,
		`{{with $x := .s}}{{$x}}{{.}}{{end}}{{if $y := .n}}{{$y}}{{end}}`,
		`{{range .l}}{{.}},{{end}}{{range .empty}}x{{else}}none{{end}}`,
		`{{range $i, $v := .l}}{{$i}}{{$v}}{{end}}{{range $v := .l}}{{$v}}{{end}}`,
		`{{range $k, $v := .m}}{{$k}};{{end}}{{range 3}}{{.}}{{end}}{{range $i := 2}}{{$i}}{{end}}{{range .n}}.{{end}}`,
		`{{range .l}}{{if eq . "b"}}{{continue}}{{end}}{{if eq . "d"}}{{break}}{{end}}{{.}}{{end}}!`,
		`{{range $r := .rows}}{{range .tags}}{{if eq . "y"}}{{break}}{{end}}{{$r.name}}{{.}}{{end}};{{end}}`,
		`{{$x := 1}}{{range .l}}{{$x = .}}{{$y := $x}}{{$y}}{{end}}{{$x}}{{if true}}{{$x := "inner"}}{{$x}}{{end}}{{$x}}`,
		`{{$i := 0}}{{$v := ""}}{{range $i, $v = .l}}{{end}}{{$i}}{{$v}}`,
		`{{$a := .m}}{{$a.deep.x}}{{(index .rows 1).name}}{{(.m).deep.x}}`,
		`{{define "t"}}<{{.}}{{$}}>{{end}}{{template "t" .s}}{{template "t" .n}}{{range .l}}{{template "t" .}}{{end}}`,
		`{{block "b" .m}}[{{.a}}]{{end}}{{define "r"}}{{.}}{{if gt . 0}}{{template "s" .}}{{end}}{{end}}` +
			`{{define "s"}}s{{.}}{{end}}{{template "r" 2}}`,
		`{{$x := "out"}}{{define "v"}}{{$x := .}}{{$x}}{{end}}{{template "v" "in"}}{{$x}}`,
		`{{and .yes .s}} {{and .e .s}} {{or .e .s}} {{or .no .e}} {{not .e}} {{not .s}} {{and 1}} {{or 0 "" "x"}}`,
		`{{and .no (index .l 99)}}{{or .yes (index .l 99)}}`, `{{.s | print "a" | printf "%s-%s" "x"}} {{print (print 1 | print) "b"}}`,
		`{{eq .n 3}} {{eq .s "a" "text"}} {{ne .n 4}} {{lt 1 2}} {{ge 2 2}} {{len .l}} {{len .s}} {{index .l 2}} {{index .m "a"}}`,
		`{{eq .none nil}} {{println "x"}}{{html "<"}}{{urlquery "a b"}}`,
	} {
		tmpl, err := ParseTemplate("body", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := tmpl.Execute(t.Context(), data, nil)
		var want strings.Builder
		if e := template.Must(template.New("").Parse(text)).Execute(&want, data); e != nil {
			t.Fatalf("%s: %v", text, e)
		}
		if err != nil || got != want.String() {
			t.Errorf("%s: %q, %v; text/template has %q", text, got, err, want.String())
		}
	}
}

// TestTemplateErrors checks that errors have the line and the column of the mistake.
func TestTemplateErrors(t *testing.T) {
	for _, tt := range []struct {
		text, want   string
		line, column int
	}{
		{"a\n{{ .x", "unclosed action", 2, 0},
		{"{{nope}}", `function "nope" not defined`, 1, 0},
		{"a\n  {{ .x \"arg\" }}", ".x is a field and takes no arguments", 2, 6},
		{"{{call .x}}", "the function call is not available; the functions are", 1, 3},
		{`{{cut .x}}`, "cut has 1 arguments, and takes 2", 1, 3},
		{`{{.x | cut 1 2}}`, "cut has 3 arguments, and takes 2", 1, 8},
		{`{{and}}`, "and has 0 arguments, and takes 1 or more", 1, 3},
		{`{{template "none"}}`, `there is no template "none"`, 1, 12},
		{`{{range .x}}{{"a" .}}{{end}}`, `"a" is a value and takes no arguments`, 1, 15},
		{`{{$x}}`, "undefined variable", 1, 0},
		{`{{1i}}`, "not available", 1, 3},
		{`{{99999999999999999999}}`, "overflow", 1, 0},
		{"{{slice .x 1}}", "the function slice is not available", 1, 3},
		{"\n\n{{range 100000}}{{end}}", "range has more than 20000 rounds; shorten the list with first", 3, 9},
		{`{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}`, "too long", 1, 26},
		{`{{range 20000}}` + strings.Repeat("x", 100) + `{{end}}`, "its output is longer than 256 KiB", 1, 16},
		{`{{$x := "0123456789"}}{{range 30}}{{$x = print $x $x}}{{end}}`, "its functions handle more than 32 MiB", 1, 42},
		{`{{printf "%1000000000d" 1}}`, "larger than 100", 1, 3},
		{`{{printf "%.*f" 1000000 1.0}}`, "larger than 100", 1, 3},
		{`{{printf "%[1]s" "x"}}`, "argument indexes", 1, 3},
	} {
		_, err := runTemplate(t, tt.text, `{"x":"y"}`)
		e, ok := errors.AsType[*TemplateError](err)
		if !ok || !strings.Contains(e.Error(), tt.want) || e.Line != tt.line || e.Column != tt.column {
			t.Errorf("%.60s: %v; want line %d, column %d: %s", tt.text, err, tt.line, tt.column, tt.want)
		}
	}
}

// TestTemplateCost checks that a template with a large payload ends at a limit and
// returns a TemplateError.
func TestTemplateCost(t *testing.T) {
	racetest.SkipIfSlow(t)
	long := strings.Repeat("%[1]s%5000d", 10_000)
	for _, text := range []string{
		`{{printf .s .s .s}}`, `{{replace "" .s .s}}`, `{{replace "s" .s .s}}`, `{{join .s (split "" .s)}}`,
		`{{range split "" .s}}{{$x := json $}}{{end}}`,
		`{{range split "" .s}}{{range split "" $.s}}{{end}}{{end}}`, `{{plain .h}}`,
		`{{$x := .s}}{{range split "" .s}}{{$x = print $x $.s}}{{end}}`,
	} {
		sent := `{"s":` + payload.Encode(long) + `,"h":` + payload.Encode(strings.Repeat("<div>", 100_000)) + `}`
		if _, err := runTemplate(t, text, sent); err != nil {
			if _, ok := errors.AsType[*TemplateError](err); !ok {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// newRun returns a run that is not limited yet.
func newRun(ctx context.Context) *run {
	return &run{meter: meter{ctx: ctx, steps: maxSteps, work: maxWork}}
}

// do calls a function of templates.
func (x *run) do(name string, args ...any) (any, error) { return functions[name].call(x, args) }

// TestFunctionsCharge checks that a function charges at least the part that it reads of a large
// value. Once default, type, len, more, comparisons and others read 7 MB for nothing, 20,000 times.
func TestFunctionsCharge(t *testing.T) {
	racetest.SkipIfSlow(t)
	const large = 1 << 20
	blank, digits, object, list := strings.Repeat(" ", large), strings.Repeat("1", large), map[string]any{}, []any{}
	for i := range large / 64 {
		object[fmt.Sprintf("%s%d", strings.Repeat("n", 40), i)] = "v"
		list = append(list, map[string]any{"n": strings.Repeat("v", 60)})
	}
	for name, calls := range map[string][][]any{
		"eq":         {{blank, blank}, {object, "x"}, {"x", list}, {"x", "y", object}},
		"ne":         {{blank, blank}, {object, "x"}},
		"lt":         {{blank, blank}, {1, list}},
		"le":         {{blank, blank}, {1, list}},
		"gt":         {{blank, blank}, {1, list}},
		"ge":         {{blank, blank}, {list, 1}},
		"index":      {{object, blank}, {object, list}},
		"len":        {{blank}, {digits}},
		"print":      {{blank}, {"x", object}},
		"println":    {{blank}},
		"printf":     {{blank}, {"%v", object}, {"%s", blank}},
		"html":       {{blank}},
		"urlquery":   {{blank}},
		"capitalize": {{blank}},
		"contains":   {{"x", blank}, {blank, "x"}, {object, "x"}},
		"cut":        {{9, blank}, {9, object}},
		"date":       {{"2006", blank}, {blank, "2026-11-20T08:00:00Z"}, {object, 1}},
		"default":    {{"x", blank}},
		"duration":   {{blank}, {object}},
		"fromJSON":   {{digits}, {object}},
		"hasPrefix":  {{"x", blank}, {blank, "x"}},
		"hasSuffix":  {{"x", blank}, {list, "x"}},
		"header":     {{blank}, {object}},
		"join":       {{",", list}, {",", object}, {",", blank}, {blank, []any{"a"}}},
		"json":       {{blank}, {object}},
		"line":       {{blank}},
		"lower":      {{blank}},
		"more":       {{1, blank}},
		"pairs":      {{object}, {map[string]any{"a": "b"}, blank}, {map[string]any{"a": list}}},
		"plain":      {{blank}},
		"replace":    {{"x", "y", blank}, {blank, "y", "z"}, {"x", object, "y"}},
		"size":       {{blank}, {object}},
		"split":      {{",", blank}, {blank, "x"}},
		"trim":       {{blank}},
		"type":       {{blank}, {object}},
		"upper":      {{blank}},
		"where":      {{"n", strings.Repeat("v", 60), list}, {blank, "x", []any{1}}},
		"without":    {{"n", strings.Repeat("v", 60), list}, {"n", object, []any{1}}},
	} {
		for i, args := range calls {
			r := newRun(t.Context())
			_, err := r.do(name, args...)
			if charged := maxWork - r.work; charged < large/2 && !errors.Is(err, errTooMuch) {
				t.Errorf("call %d of %s charges %d, and reads %d", i, name, charged, large)
			}
		}
	}
	r := newRun(t.Context())
	if err := r.each(object, func(any, any) error { return errBreak }); !errors.Is(err, errBreak) || maxWork-r.work < large/2 {
		t.Errorf("range charges %d for an object: %v", maxWork-r.work, err)
	}
	// A function that reads little of a large value costs little.
	for name, args := range map[string][]any{
		"default": {"x", "x" + blank}, "eq": {"x", blank}, "lt": {1, "x"}, "first": {1, list}, "index": {list, 1},
	} {
		r := newRun(t.Context())
		if _, err := r.do(name, args...); err != nil || maxWork-r.work > 1000 {
			t.Errorf("%s charges %d, %v", name, maxWork-r.work, err)
		}
	}
	if _, ok := payload.Float(digits); ok {
		t.Error("a megabyte of digits is read as a number")
	}
}

// TestFunctionsStop checks that every function ends a run that is stopped.
func TestFunctionsStop(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for name, f := range functions {
		for _, v := range []any{"x", 1, nil, []any{"x"}, map[string]any{"a": "b"}} {
			args := slices.Repeat([]any{v}, max(f.least, 1))
			if f.call == nil { // and and or charge nothing; their arguments do
				continue
			}
			if _, err := newRun(ctx).do(name, args...); !errors.Is(err, stopped) {
				t.Errorf("%s of %v: %v", name, v, err)
			}
		}
	}
}

// endingContext is a context that ends after it has been asked a number of times.
type endingContext struct {
	context.Context
	left, asked int
}

func (c *endingContext) Err() error {
	if c.asked++; c.asked > c.left {
		return context.Canceled
	}
	return nil
}

// TestTemplateStops checks that a run ends with its context, at its next round or call.
func TestTemplateStops(t *testing.T) {
	for _, text := range []string{
		`{{range 20000}}{{end}}`, `{{range 20000}}{{if eq $.s "y"}}{{end}}{{end}}`, `{{range 20000}}{{$x := $.s | upper | lower | len}}{{end}}`,
		`{{range .l}}{{range $.l}}{{range $.l}}{{with .a}}{{end}}{{end}}{{end}}{{end}}`,
		`{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}`,
	} {
		tmpl, err := ParseTemplate("body", text)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &endingContext{Context: t.Context(), left: 1000}
		_, err = tmpl.Execute(ctx, map[string]any{"s": "x", "l": make([]any, 1000)}, nil)
		if _, ok := errors.AsType[*TemplateError](err); !ok || ctx.asked > ctx.left+2 { // Cause asks, too
			t.Errorf("%s: %v, after the context was asked %d times", text, err, ctx.asked)
		}
	}

	// Neither template of a source runs when the client is gone.
	s, err := New(Config{Name: "proxmox", Templates: Templates{Body: `{{range 20000}}{{end}}`}})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client is gone"))
	m, err := s.Read(gone, &Request{Header: http.Header{}, Body: []byte(`{"title":"x","message":"y"}`)})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 || !strings.Contains(err.Error(), "the client is gone") {
		t.Errorf("%v, %v", m, err)
	}
	ended, end := context.WithTimeoutCause(t.Context(), 0, errTooLate)
	defer end()
	// On a busy machine the next attempt may succeed, so a program is asked to make it. This does
	// not apply to a template that does too much, even if the time ends in the same moment.
	m, err = s.Read(ended, &Request{Header: http.Header{}, Body: []byte(`{"title":"x","message":"y"}`)})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 503 ||
		!strings.Contains(err.Error(), "takes too long: all templates of a source together have 5s") {
		t.Errorf("after the deadline: %v, %v", m, err)
	}
	tmpl, err := ParseTemplate("body", `{{.x}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Execute(ended, nil, nil); !errors.Is(err, errTooLate) ||
		!strings.Contains(err.Error(), "takes too long: all templates of a source together have 5s") {
		t.Errorf("after the deadline: %v", err)
	}
}

// TestTemplateRounds checks how many rounds a template has for a large value: the
// attack's templates ran 20,000.
func TestTemplateRounds(t *testing.T) {
	racetest.SkipIfSlow(t)
	blank := strings.Repeat(" ", 7<<20)
	for _, expression := range []string{
		`default "x" .`, `len .`, `more 1 .`, `type .`, `eq . .`, `lt . .`, `trim .`,
		`. | upper | lower | len`, `and (eq . .) (ne . .)`,
	} {
		tmpl, err := ParseTemplate("body", `{{$s := .}}{{range 100}}{{with $s}}{{$x := `+expression+`}}{{end}}{{end}}`)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &endingContext{Context: t.Context(), left: maxSteps}
		if _, err := tmpl.Execute(ctx, blank, nil); !errors.Is(err, errTooMuch) || ctx.asked > 20 {
			t.Errorf("%s: %v after %d rounds and calls", expression, err, ctx.asked)
		}
	}
}

func TestCheckLeftOver(t *testing.T) {
	for text, want := range map[string]bool{
		`{{.a}}`: false, `{{ $x := .a }}{{$x}}`: false, `plain`: false, `{a}`: false, `{{"{"}}`: false,
		`{= .a}}`: true, `{}`: true, `x {}} y`: true, `{ = .a}`: true, `{= .a}{{.x}}`: true,
	} {
		if err := CheckLeftOver(text); (err != nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDocumentation checks that docs/templates.md has an example of every function,
// and that each example makes the output on the page.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	sent := regexp.MustCompile("(?s)```text\n(.*?)```").FindSubmatch(page)
	if sent == nil {
		t.Fatal("the page has no payload")
	}
	examples := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| `([^`]*)` \\| (`[^`]*`|nothing) \\|").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 30 {
		t.Fatalf("the page has only %d examples", len(examples))
	}
	seen := map[string]bool{}
	for _, m := range examples {
		seen[strings.Fields(m[1])[0]] = true
		text := strings.ReplaceAll(m[2], `\|`, "|")
		want := strings.Trim(m[3], "`")
		if m[3] == "nothing" {
			want = ""
		}
		got, err := runTemplate(t, text, string(sent[1]))
		if err != nil || strings.ReplaceAll(got, "\n", " ") != want {
			t.Errorf("%s: got %q, %v; the page says %q", text, got, err, want)
		}
	}
	for _, name := range append(slices.Clip(functionNames), "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "index", "len", "print",
		"printf", "println", "html", "urlquery") {
		if !seen[name] {
			t.Errorf("the page has no example of %s", name)
		}
	}
}
