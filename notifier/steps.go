package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Steps records which steps of sending one part of a message are done, so that
// another attempt, in this process or a later one, does not repeat them. A
// service that sends more than one request for a message runs each as a step.
// Steps are safe for use by several goroutines.
type Steps struct {
	mu      sync.Mutex
	done    bool // the service has sent the part
	skipped bool // there is nothing to send for the part
	steps   map[stepKey]json.RawMessage
}

type stepKey struct {
	kind stepKind
	name string
}

type stepKind int

const (
	stepSent   stepKind = iota // Once: something has arrived
	stepValue                  // OnceValue: only a result is kept
	stepTarget                 // Each: a recipient has everything
)

func (s *Steps) get(kind stepKind, name string) (result json.RawMessage, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, done = s.steps[stepKey{kind, name}]
	return result, done
}

func (s *Steps) set(kind stepKind, name string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps == nil {
		s.steps = map[stepKey]json.RawMessage{}
	}
	s.steps[stepKey{kind, name}] = result
}

// Once runs f unless an earlier attempt at this part of the message ran it
// under the same name without an error. It is for steps that a recipient
// notices, such as the text that goes before a file.
func (s *Steps) Once(name string, f func() error) error {
	if _, done := s.get(stepSent, name); done {
		return nil
	}
	if err := f(); err != nil {
		return err
	}
	s.set(stepSent, name, nil)
	return nil
}

// OnceValue returns the result of f. If an earlier attempt at this part of the
// message ran f under the same name without an error, OnceValue returns that
// result instead. It is for steps that prepare others and that no recipient
// notices, such as the upload of a file whose ID goes into the message. The
// result is kept as JSON, and T must survive that.
func OnceValue[T any](s *Steps, name string, f func() (T, error)) (T, error) {
	if saved, done := s.get(stepValue, name); done {
		var value T
		if json.Unmarshal(saved, &value) == nil {
			return value, nil
		}
		// Another version of the program saved it. Do it again.
	}
	value, err := f()
	if err != nil {
		return value, err
	}
	saved, err := json.Marshal(value)
	if err != nil {
		return value, fmt.Errorf("keeping the result of %q: %w", name, err)
	}
	s.set(stepValue, name, saved)
	return value, nil
}

// maxTargetsAtOnce is the maximum number of targets of one destination that are
// sent to at once.
const maxTargetsAtOnce = 4

// Each runs f for every target that does not have the message yet, up to four
// at once. An error of one target does not stop the others. Each returns all
// errors, each with the number of its target. A target for which f returned
// nil is left out of later attempts.
func (s *Steps) Each(ctx context.Context, targets []string, f func(ctx context.Context, target string) error) error {
	send := func(target string) error {
		if s.Sent(target) {
			return nil
		}
		if err := f(ctx, target); err != nil {
			return err
		}
		s.MarkSent(target)
		return nil
	}
	if len(targets) == 1 {
		return send(targets[0])
	}
	errs := make([]error, len(targets))
	room := make(chan struct{}, maxTargetsAtOnce)
	var wg sync.WaitGroup
	for i, target := range targets {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			err := protect(func() error { return send(target) })
			errs[i] = TargetError(i, len(targets), err)
		})
	}
	wg.Wait()
	return join(errs)
}

// Sent reports whether the target has this part of the message.
func (s *Steps) Sent(target string) bool {
	_, done := s.get(stepTarget, target)
	return done
}

// MarkSent records that the target has this part of the message. A service
// needs it only if one request serves several targets and the answer names
// those that failed; otherwise [Steps.Each] is simpler.
func (s *Steps) MarkSent(target string) { s.set(stepTarget, target, nil) }

// finish records that the service has sent the part.
func (s *Steps) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
}

func (s *Steps) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// skip records that there is nothing to send for the part.
func (s *Steps) skip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped = true
}

func (s *Steps) isSkipped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// partlySent reports whether some target has some, but not all of the part.
func (s *Steps) partlySent() bool { return s.has(stepSent) }

// anySent reports whether some target has the part, or some of it.
func (s *Steps) anySent() bool { return s.has(stepSent) || s.has(stepTarget) }

func (s *Steps) has(kind stepKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.steps {
		if key.kind == kind {
			return true
		}
	}
	return false
}

// savedSteps is the JSON of [Steps].
type savedSteps struct {
	Done    bool                       `json:"done,omitempty"`
	Skipped bool                       `json:"skipped,omitempty"`
	Sent    []string                   `json:"sent,omitempty"`
	Targets []string                   `json:"targets,omitempty"`
	Values  map[string]json.RawMessage `json:"values,omitempty"`
}

func (s *Steps) save() savedSteps {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := savedSteps{Done: s.done, Skipped: s.skipped}
	if s.done {
		return saved // the steps are no longer needed
	}
	for key, result := range s.steps {
		switch key.kind {
		case stepSent:
			saved.Sent = append(saved.Sent, key.name)
		case stepTarget:
			saved.Targets = append(saved.Targets, key.name)
		case stepValue:
			if saved.Values == nil {
				saved.Values = map[string]json.RawMessage{}
			}
			saved.Values[key.name] = result
		}
	}
	slices.Sort(saved.Sent)
	slices.Sort(saved.Targets)
	return saved
}

func (s savedSteps) restore() *Steps {
	steps := &Steps{done: s.Done, skipped: s.Skipped}
	for _, name := range s.Sent {
		steps.set(stepSent, name, nil)
	}
	for _, target := range s.Targets {
		steps.set(stepTarget, target, nil)
	}
	for name, result := range s.Values {
		steps.set(stepValue, name, result)
	}
	return steps
}
