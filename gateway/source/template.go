package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"text/template"
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
	runs sync.Pool // holds *run
}

// run is a template with the state of one execution.
type run struct {
	meter
	template *template.Template
	header   http.Header
	paths    [][]string // names of the fields of the template, which _get and _text take by number
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

var (
	templateError = lazyregexp.New(`(?s)^template: [^:]*:(\d+)(?::(\d+))?: (.*)$`)
	executing     = lazyregexp.New(`(?s)^executing ".*?" at <.*?>: (.*)$`)
	calling       = lazyregexp.New(`(?s)^error calling \w+: (.*)$`)
	tooMuch       = errTooMuch.Error()
)

// wrapError returns an error of text/template as a TemplateError.
func wrapError(name string, err error) error {
	m := templateError.FindStringSubmatch(err.Error())
	if m == nil {
		return &TemplateError{Name: name, Line: 1, Err: err}
	}
	e := &TemplateError{Name: name}
	e.Line, _ = strconv.Atoi(m[1])
	if m[2] != "" {
		e.Column, _ = strconv.Atoi(m[2])
		e.Column++
	}
	reason := m[3]
	for _, prefix := range []*lazyregexp.Regexp{executing, calling} {
		if m := prefix.FindStringSubmatch(reason); m != nil {
			reason = m[1]
		}
	}
	if rest, ok := strings.CutPrefix(reason, tooMuch); errors.Is(err, errTooLate) {
		e.Err = errTooLate
	} else if ok {
		e.Err = fmt.Errorf("%w%s", errTooMuch, rest)
	} else {
		e.Err = errors.New(reason)
	}
	return e
}

// ParseTemplate parses a template. name is for errors. The error is a
// [*TemplateError].
func ParseTemplate(name, text string) (*Template, error) {
	functions := (&run{}).functions()
	t, err := template.New(name).Funcs(functions).Parse(text)
	if err != nil {
		return nil, wrapError(name, err)
	}
	var paths [][]string
	for _, defined := range t.Templates() {
		rw := rewriter{tree: defined.Tree, functions: functions, paths: &paths}
		rw.list(defined.Root)
		if rw.err != nil {
			return nil, wrapError(name, rw.err)
		}
		defined.Root.Nodes = append([]parse.Node{rw.stepNode(defined.Root.Position())}, defined.Root.Nodes...)
	}
	out := &Template{name: name}
	out.runs.New = func() any {
		r := &run{paths: paths}
		c, err := t.Clone()
		if err != nil {
			return err
		}
		r.template = c.Funcs(r.functions())
		return r
	}
	return out, nil
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

// Execute runs the template on a payload, until ctx is done. The error is a
// [*TemplateError].
func (t *Template) Execute(ctx context.Context, data any, header http.Header) (string, error) {
	got := t.runs.Get()
	r, ok := got.(*run)
	if !ok {
		return "", &TemplateError{Name: t.name, Line: 1, Err: got.(error)}
	}
	defer t.runs.Put(r)
	r.steps, r.work, r.header = maxSteps, maxWork, header
	r.stopped = func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	var out limitedBuffer
	err := r.template.Execute(&out, data)
	r.header, r.stopped = nil, nil
	if err != nil {
		return "", wrapError(t.name, err)
	}
	return out.text.String(), nil
}

// limitedBuffer is a buffer of at most maxOutput bytes.
type limitedBuffer struct{ text bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("%w: its output is longer than %d KiB; shorten it with cut or first", errTooMuch, maxOutput>>10)
	}
	return b.text.Write(p)
}

// rewriter changes a parsed template: it counts steps, gets fields with _get, and
// converts values for range and output. text/template calls functions by reflection, so each call
// that it adds is dear.
type rewriter struct {
	tree      *parse.Tree
	functions map[string]any
	paths     *[][]string // see [run]
	err       error       // the first error
}

// fail sets the error at a node, unless there is an earlier one.
func (rw *rewriter) fail(n parse.Node, format string, args ...any) {
	if rw.err == nil {
		location, _ := rw.tree.ErrorContext(n)
		rw.err = fmt.Errorf("template: %s: %s", location, fmt.Sprintf(format, args...))
	}
}

func (rw *rewriter) identifier(name string, at parse.Pos) *parse.IdentifierNode {
	return parse.NewIdentifier(name).SetPos(at).SetTree(rw.tree)
}

func (rw *rewriter) command(at parse.Pos, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: args}
}

// stepNode returns an action that counts a step and prints nothing.
func (rw *rewriter) stepNode(at parse.Pos) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{rw.command(at, rw.identifier("_step", at))},
	}}
}

// list rewrites the nodes of a list.
func (rw *rewriter) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			rw.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				rw.print(n.Pipe)
			}
		case *parse.IfNode:
			rw.branch(&n.BranchNode)
		case *parse.WithNode:
			rw.branch(&n.BranchNode)
		case *parse.RangeNode:
			rw.branch(&n.BranchNode)
			n.Pipe.Cmds = append(n.Pipe.Cmds, rw.command(n.Pos, rw.identifier("_items", n.Pos)))
			n.List.Nodes = append([]parse.Node{rw.stepNode(n.Pos)}, n.List.Nodes...)
		case *parse.TemplateNode:
			rw.pipe(n.Pipe)
		}
	}
}

// print makes the result of a pipeline a text.
func (rw *rewriter) print(p *parse.PipeNode) {
	name := ""
	if f, ok := p.Cmds[len(p.Cmds)-1].Args[0].(*parse.IdentifierNode); ok {
		name = f.Ident
	}
	switch f := reflect.TypeOf(rw.functions[name]); {
	case name == "_get":
		p.Cmds[0].Args[0] = rw.identifier("_text", p.Pos)
	case f == nil || f.Out(0).Kind() != reflect.String:
		p.Cmds = append(p.Cmds, rw.command(p.Pos, rw.identifier("_print", p.Pos)))
	}
}

func (rw *rewriter) branch(n *parse.BranchNode) {
	rw.pipe(n.Pipe)
	rw.list(n.List)
	rw.list(n.ElseList)
}

// pipe rewrites the commands of a pipeline.
func (rw *rewriter) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for i, c := range p.Cmds {
		for j, arg := range c.Args {
			get := rw.argument(arg)
			switch {
			case get == nil:
			case j > 0:
				c.Args[j] = &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Position(), Cmds: []*parse.CommandNode{get}}
			case len(c.Args) > 1 || i > 0:
				rw.fail(arg, "%s is a field and takes no arguments", arg)
			default:
				c.Args = get.Args
			}
		}
	}
}

// argument rewrites an argument of a command. If it is a field, argument returns the command that
// gets the field, and otherwise nil.
func (rw *rewriter) argument(arg parse.Node) *parse.CommandNode {
	switch arg := arg.(type) {
	case *parse.FieldNode:
		return rw.get(arg.Pos, &parse.DotNode{NodeType: parse.NodeDot, Pos: arg.Pos}, arg.Ident)
	case *parse.VariableNode:
		if len(arg.Ident) > 1 {
			variable := &parse.VariableNode{NodeType: parse.NodeVariable, Pos: arg.Pos, Ident: arg.Ident[:1]}
			return rw.get(arg.Pos, variable, arg.Ident[1:])
		}
	case *parse.ChainNode:
		inner := arg.Node
		if c := rw.argument(inner); c != nil {
			inner = &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Pos, Cmds: []*parse.CommandNode{c}}
		}
		return rw.get(arg.Pos, inner, arg.Field)
	case *parse.PipeNode:
		rw.pipe(arg)
	case *parse.IdentifierNode:
		switch arg.Ident {
		case "call", "slice", "js":
			rw.fail(arg, "the function %s is not available; the functions are %s", arg.Ident, strings.Join(functionNames, ", "))
		}
	}
	return nil
}

// get returns the command that gets the member of a value at the path of names.
func (rw *rewriter) get(at parse.Pos, of parse.Node, names []string) *parse.CommandNode {
	*rw.paths = append(*rw.paths, names)
	n := len(*rw.paths) - 1
	return rw.command(at, rw.identifier("_get", at), of,
		&parse.NumberNode{NodeType: parse.NodeNumber, Pos: at, IsInt: true, Int64: int64(n), Text: strconv.Itoa(n)})
}
