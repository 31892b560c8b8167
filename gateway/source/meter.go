package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// Limits of one run of a template.
const (
	maxSteps  = 20_000    // rounds of range and calls of defined templates
	maxOutput = 256 << 10 // bytes
	maxWork   = 32 << 20  // bytes that functions read or make
	callWork  = 16        // bytes charged for each call of a function
)

// meter limits the work of one run of a template.
type meter struct {
	ctx   context.Context
	steps int // remaining of maxSteps
	work  int // remaining of maxWork
}

// stopped returns the cause of the end of the run's context.
func (m *meter) stopped() error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	return nil
}

// errTooMuch is returned when a template exceeds a limit.
var errTooMuch = errors.New("the template takes too long")

// errTooLate is returned when the time for the templates is over, perhaps because the machine is
// busy.
var errTooLate = fmt.Errorf("%w: all templates of a source together have %s", errTooMuch, templateTimeout)

// step counts one round of range or one call of a template.
func (m *meter) step() error {
	if m.steps--; m.steps < 0 {
		return fmt.Errorf("%w: range has more than %d rounds; shorten the list with first", errTooMuch, maxSteps)
	}
	return m.stopped()
}

// charge counts n bytes of work that a function is about to do, plus callWork. It returns an error
// if the run exceeds maxWork or is stopped. Nothing else ends a run early, so every function charges
// at least once.
func (m *meter) charge(n int) error {
	if n < 0 || n > m.work-callWork {
		return fmt.Errorf("%w: its functions handle more than %d MiB", errTooMuch, maxWork>>20)
	}
	m.work -= n + callWork
	return m.stopped()
}

// jsonWork is the cost of encoding or decoding one byte of JSON, in bytes of other work.
const jsonWork = 8

// text returns v as text and charges its size.
func (m *meter) text(v any) (string, error) {
	n := payload.Size(v)
	switch v.(type) {
	case []any, []string, map[string]any:
		n *= jsonWork
	}
	if err := m.charge(n); err != nil {
		return "", err
	}
	return payload.Text(v), nil
}

// texts returns values as texts and charges their sizes.
func (m *meter) texts(values ...any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		var err error
		if out[i], err = m.text(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// chargeResult charges the size of a text that a function has made.
func (m *meter) chargeResult(s string, err error) (string, error) {
	if err == nil {
		err = m.charge(len(s))
	}
	return s, err
}
