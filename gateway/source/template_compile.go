package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// text/template executes templates by reflection, which took most of the time of a message, and has
// neither limits nor fields that may be missing. So a template is parsed by text/template/parse, and
// compiled into functions here. The meaning is that of text/template, except for the differences
// that [Template] names.

// compiler compiles one block.
type compiler struct {
	blocks map[string]*block
	tree   *parse.Tree
	scope  []string // names of the variables that can be seen; the index of a variable is its place in the frame
	most   int      // how many there are at most
}

// compile compiles the template called name and those that it defines.
func compile(trees map[string]*parse.Tree, name string) (*block, error) {
	blocks := map[string]*block{}
	for name := range trees {
		blocks[name] = &block{}
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		c := &compiler{blocks: blocks, tree: trees[name], scope: []string{"$"}, most: 1}
		do, err := c.list(trees[name].Root)
		if err != nil {
			return nil, err
		}
		*blocks[name] = block{do, c.most}
	}
	return blocks[name], nil
}

// at returns err with the place of a node, unless it has one or is about the rounds of range.
func (c *compiler) at(n parse.Node, err error) error {
	if _, ok := errors.AsType[*TemplateError](err); ok || err == nil || errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		return err
	}
	e := &TemplateError{Name: c.tree.ParseName, Err: err}
	place, _ := c.tree.ErrorContext(n) // name:line:column
	rest, column, _ := cutLast(place, ":")
	_, line, _ := cutLast(rest, ":")
	e.Line, _ = strconv.Atoi(line)
	e.Column, _ = strconv.Atoi(column)
	e.Column++
	return e
}

// cutLast cuts s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// list compiles a list of nodes, whose variables end with it.
func (c *compiler) list(l *parse.ListNode) (action, error) {
	if l == nil {
		return func(*run) error { return nil }, nil
	}
	defer c.end(len(c.scope))
	var all []action
	for _, n := range l.Nodes {
		do, err := c.node(n)
		if err != nil {
			return nil, err
		}
		all = append(all, do)
	}
	return func(x *run) error {
		for _, do := range all {
			if err := do(x); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// end ends the scope of all variables but the first n.
func (c *compiler) end(n int) { c.scope = c.scope[:n] }

// declare returns the place of a new variable in the frame.
func (c *compiler) declare(name string) int {
	c.scope = append(c.scope, name)
	c.most = max(c.most, len(c.scope))
	return len(c.scope) - 1
}

// variable returns the place of a variable that can be seen. The parser has refused others.
func (c *compiler) variable(name string) int {
	for i, v := range slices.Backward(c.scope) {
		if v == name {
			return i
		}
	}
	return 0
}

func (c *compiler) node(n parse.Node) (action, error) {
	switch n := n.(type) {
	case *parse.TextNode:
		text := string(n.Text)
		return func(x *run) error { return c.at(n, x.write(text)) }, nil
	case *parse.ActionNode:
		return c.action(n)
	case *parse.IfNode:
		return c.condition(&n.BranchNode, false)
	case *parse.WithNode:
		return c.condition(&n.BranchNode, true)
	case *parse.RangeNode:
		return c.rangeOver(n)
	case *parse.TemplateNode:
		return c.call(n)
	case *parse.BreakNode:
		return func(*run) error { return errBreak }, nil
	case *parse.ContinueNode:
		return func(*run) error { return errContinue }, nil
	case *parse.CommentNode:
		return func(*run) error { return nil }, nil
	}
	return nil, c.at(n, fmt.Errorf("%s is not available", n))
}

// action compiles a pipeline whose value is printed or assigned.
func (c *compiler) action(n *parse.ActionNode) (action, error) {
	value, err := c.pipe(n.Pipe)
	if err != nil {
		return nil, err
	}
	if places := c.places(n.Pipe); len(places) > 0 {
		return func(x *run) error {
			v, err := value(x)
			if err == nil {
				x.set(places, v)
			}
			return err
		}, nil
	}
	return func(x *run) error {
		v, err := value(x)
		if err != nil {
			return err
		}
		s, ok := v.(string)
		if !ok {
			if s, err = x.text(v); err != nil {
				return c.at(n, err)
			}
		}
		return c.at(n, x.write(s))
	}, nil
}

// places returns the places of the variables that a pipeline declares or sets.
func (c *compiler) places(p *parse.PipeNode) (places []int) {
	for _, v := range p.Decl {
		if p.IsAssign {
			places = append(places, c.variable(v.Ident[0]))
		} else {
			places = append(places, c.declare(v.Ident[0]))
		}
	}
	return places
}

// branch is if, with or range.
type branch struct {
	value           evaluator
	places          []int // of its variables
	then, otherwise action
}

// branch compiles the parts of if, with or range, whose variables end with it.
func (c *compiler) branch(n *parse.BranchNode) (b branch, err error) {
	defer c.end(len(c.scope))
	if b.value, err = c.pipe(n.Pipe); err != nil {
		return b, err
	}
	b.places = c.places(n.Pipe)
	if b.then, err = c.list(n.List); err != nil {
		return b, err
	}
	b.otherwise, err = c.list(n.ElseList)
	return b, err
}

// condition compiles if or with, which sets the dot.
func (c *compiler) condition(n *parse.BranchNode, with bool) (action, error) {
	b, err := c.branch(n)
	return func(x *run) error {
		v, err := b.value(x)
		if err != nil {
			return err
		}
		x.set(b.places, v)
		if !isTrue(v) {
			return b.otherwise(x)
		}
		dot := x.dot
		if with {
			x.dot = v
		}
		err = b.then(x)
		x.dot = dot
		return err
	}, err
}

// rangeOver compiles range.
func (c *compiler) rangeOver(n *parse.RangeNode) (action, error) {
	b, err := c.branch(&n.BranchNode)
	return func(x *run) error {
		v, err := b.value(x)
		if err != nil {
			return err
		}
		rounds := 0
		round := func(index, v any) error {
			rounds++
			if err := x.step(); err != nil {
				return c.at(n.Pipe, err)
			}
			x.set(b.places, v)
			if len(b.places) == 2 {
				x.set(b.places[:1], index)
			}
			x.dot = v
			return b.then(x)
		}
		dot := x.dot
		err = x.each(v, round)
		x.dot = dot
		if errors.Is(err, errBreak) {
			err = nil
		}
		if err == nil && rounds == 0 {
			err = b.otherwise(x)
		}
		return c.at(n.Pipe, err)
	}, err
}

// call compiles the execution of another template.
func (c *compiler) call(n *parse.TemplateNode) (action, error) {
	to := c.blocks[n.Name]
	if to == nil {
		return nil, c.at(n, fmt.Errorf("there is no template %q", n.Name))
	}
	value := evaluator(func(*run) (any, error) { return nil, nil })
	if n.Pipe != nil {
		var err error
		if value, err = c.pipe(n.Pipe); err != nil {
			return nil, err
		}
	}
	return func(x *run) error {
		v, err := value(x)
		if err != nil {
			return err
		}
		return c.at(n, to.execute(x, v))
	}, nil
}

// pipe compiles the commands of a pipeline, each of which gets the value of the one before it as its
// last argument.
func (c *compiler) pipe(p *parse.PipeNode) (evaluator, error) {
	var value evaluator
	for _, command := range p.Cmds {
		var err error
		if value, err = c.command(command, value); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// command compiles a command. last is its last argument, or nil for none.
func (c *compiler) command(n *parse.CommandNode, last evaluator) (evaluator, error) {
	first := n.Args[0]
	name, isCall := first.(*parse.IdentifierNode)
	if isCall {
		args, err := c.arguments(n.Args[1:], last)
		if err != nil {
			return nil, err
		}
		return c.function(name, args)
	}
	if len(n.Args) > 1 || last != nil {
		return nil, c.at(first, fmt.Errorf("%s is %s and takes no arguments", first, kindOf(first)))
	}
	return c.value(first)
}

// kindOf names the kind of a node that is no function.
func kindOf(n parse.Node) string {
	switch n.(type) {
	case *parse.FieldNode, *parse.ChainNode:
		return "a field"
	case *parse.VariableNode:
		return "a variable"
	}
	return "a value"
}

func (c *compiler) arguments(nodes []parse.Node, last evaluator) (args []evaluator, err error) {
	for _, n := range nodes {
		arg, err := c.value(n)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if last != nil {
		args = append(args, last)
	}
	return args, nil
}

// value compiles an argument.
func (c *compiler) value(n parse.Node) (evaluator, error) {
	constant := func(v any) (evaluator, error) { return func(*run) (any, error) { return v, nil }, nil }
	dot := func(x *run) (any, error) { return x.dot, nil }
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return constant(nil)
	case *parse.BoolNode:
		return constant(n.True)
	case *parse.StringNode:
		return constant(n.Text)
	case *parse.NumberNode:
		switch {
		case n.IsInt && !isFloat(n.Text):
			return constant(int(n.Int64))
		case n.IsFloat:
			return constant(n.Float64)
		}
		return nil, c.at(n, fmt.Errorf("the number %s is not available", n.Text))
	case *parse.FieldNode:
		return c.field(n, dot, n.Ident), nil
	case *parse.VariableNode:
		i := c.variable(n.Ident[0])
		v := func(x *run) (any, error) { return x.vars[x.frame+i], nil }
		if len(n.Ident) == 1 {
			return v, nil
		}
		return c.field(n, v, n.Ident[1:]), nil
	case *parse.ChainNode:
		of, err := c.value(n.Node)
		if err != nil {
			return nil, err
		}
		return c.field(n, of, n.Field), nil
	case *parse.PipeNode:
		return c.pipe(n)
	case *parse.IdentifierNode:
		return c.function(n, nil)
	}
	return nil, c.at(n, fmt.Errorf("%s is not available", n))
}

// isFloat reports whether a number that may be an integer is written as another one, such as 1.0.
func isFloat(number string) bool {
	switch {
	case number[0] == '\'':
		return false
	case strings.HasPrefix(strings.ToLower(strings.TrimLeft(number, "+-")), "0x"):
		return strings.ContainsAny(number, "pP")
	}
	return strings.ContainsAny(number, ".eE")
}

// field compiles the member of a value at the path of names.
func (c *compiler) field(n parse.Node, of evaluator, names []string) evaluator {
	return func(x *run) (any, error) {
		v, err := of(x)
		if err == nil {
			err = c.at(n, x.charge(0))
		}
		return payload.Get(v, names...), err
	}
}

// function compiles a call.
func (c *compiler) function(n *parse.IdentifierNode, args []evaluator) (evaluator, error) {
	f, ok := functions[n.Ident]
	if !ok {
		return nil, c.at(n, fmt.Errorf("the function %s is not available; the functions are %s", n.Ident, strings.Join(functionNames, ", ")))
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, c.at(n, fmt.Errorf("%s has %d arguments, and takes %s", n.Ident, len(args), f.takes()))
	}
	switch n.Ident {
	case "and", "or":
		stopsAt := n.Ident == "or"
		return func(x *run) (v any, err error) {
			for _, arg := range args {
				if v, err = arg(x); err != nil || isTrue(v) == stopsAt {
					break
				}
			}
			return v, err
		}, nil
	}
	return func(x *run) (any, error) {
		first := len(x.args)
		for _, arg := range args {
			v, err := arg(x)
			if err != nil {
				return nil, err
			}
			x.args = append(x.args, v)
		}
		v, err := f.call(x, x.args[first:len(x.args):len(x.args)])
		x.args = x.args[:first]
		return v, c.at(n, err)
	}, nil
}
