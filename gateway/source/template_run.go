package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Execute runs the template on a payload, until ctx is done. The error is a
// [*TemplateError].
func (t *Template) Execute(ctx context.Context, data any, header http.Header) (string, error) {
	return t.execute(&run{meter: meter{ctx: ctx}, header: header}, data)
}

// execute is Execute with the run of the template before, whose memory it uses again.
func (t *Template) execute(x *run, data any) (string, error) {
	*x = run{
		meter: meter{ctx: x.ctx, steps: maxSteps, work: maxWork}, header: x.header,
		out: x.out[:0], vars: x.vars[:0], args: x.args[:0],
	}
	if err := t.main.execute(x, data); err != nil {
		e, ok := errors.AsType[*TemplateError](err)
		if !ok {
			e = &TemplateError{Name: t.name, Line: 1, Err: err}
		}
		return "", e
	}
	return string(x.out), nil
}

// run is the state of one execution of a template.
type run struct {
	meter
	header http.Header
	out    []byte
	dot    any
	vars   []any // variables of the templates under way
	frame  int   // index of the first variable of the innermost one
	args   []any // arguments of the functions under way
}

// evaluator returns the value of a part of a template.
type evaluator func(x *run) (any, error)

// action does what a node of a template says. The error may be errBreak or errContinue.
type action func(x *run) error

// errBreak and errContinue end a round of range.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// block is a template or one that it defines.
type block struct {
	do   action
	vars int // how many variables it has at most at a time; the first is $
}

// execute executes a block on a value.
func (b *block) execute(x *run, dot any) error {
	if err := x.step(); err != nil {
		return err
	}
	caller, callersDot := x.frame, x.dot
	x.frame, x.dot = len(x.vars), dot
	x.vars = append(x.vars, dot)
	for range b.vars - 1 {
		x.vars = append(x.vars, nil)
	}
	err := b.do(x)
	x.vars, x.frame, x.dot = x.vars[:x.frame], caller, callersDot
	return err
}

// set sets the variables at places of the frame.
func (x *run) set(places []int, v any) {
	for _, i := range places {
		x.vars[x.frame+i] = v
	}
}

// write adds text to the output.
func (x *run) write(text string) error {
	if len(x.out)+len(text) > maxOutput {
		return fmt.Errorf("%w: its output is longer than %d KiB; shorten it with cut or first", errTooMuch, maxOutput>>10)
	}
	x.out = append(x.out, text...)
	return nil
}

// each calls round for the elements of an array, the members of an object in the order of their
// names, or the numbers below an integer. Any other value has none.
func (x *run) each(v any, round func(index, v any) error) (err error) {
	next := func(index, v any) bool {
		if err = round(index, v); errors.Is(err, errContinue) {
			err = nil
		}
		return err == nil
	}
	switch v := v.(type) {
	case []any:
		eachItem(v, next)
	case []string:
		eachItem(v, next)
	case map[string]any:
		if err := x.charge(sortWork(v)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !next(name, v[name]) {
				break
			}
		}
	case int:
		for i := 0; i < v && next(i, i); i++ { //nolint:revive // next ends the loop
		}
	}
	return err
}

// eachItem calls next for the items of a list until it returns false.
func eachItem[T any](list []T, next func(index, v any) bool) {
	for i, item := range list {
		if !next(i, item) {
			return
		}
	}
}

// isTrue reports whether a value is not the zero value of its type and has elements.
func isTrue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int:
		return v != 0
	case int64:
		return v != 0
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case []string:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
