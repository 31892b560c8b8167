package notifier

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Progress records the parts of a message that a destination has and, for the other parts, the
// [Steps] that are done. A delivery that gets it in [Target] continues there and sends nothing
// twice to a recipient that has it.
//
// A Progress can be saved as JSON at any time, even while a delivery uses it, and restored in
// another process. It belongs to the message and the URL that it was made with. A delivery of
// another message, to another URL, or of a part that is now divided differently ignores the record
// and sends.
//
// The JSON names recipients and contains services' state between steps, such as IDs of uploaded
// files. It is as confidential as the URL.
//
// The zero Progress is empty and ready for use. It must not be copied.
type Progress struct {
	mu    sync.Mutex
	id    string // identifies the message and the destination; "" until it is needed
	form  form
	parts []progressPart

	// The input of id, until id is computed.
	destination *Destination
	message     *Message

	// The part of a message in one part, and its steps. They are used once.
	onePart  [1]progressPart
	oneSteps Steps
}

// progressPart is a part of the message and its steps.
type progressPart struct {
	message *Message // nil if restored or no longer needed
	id      string   // identifies the text; "" until it is needed
	steps   *Steps
}

// form says how a message is divided after the destination has refused it in the form that the
// URL's parameters ask for. The zero form follows the parameters.
type form struct {
	Overflow  markup.Overflow `json:"overflow,omitempty"` // replaces the URL's
	FilesLeft bool            `json:"files_left_out,omitempty"`
	Refusal   string          `json:"refusal,omitempty"` // why, with secrets masked

	// LinkInText means that the text ends with the link to acknowledge the incident, even if the
	// service has a button.
	LinkInText bool `json:"link_in_text,omitempty"`
}

// begin prepares p for a delivery of m to d and reports in which form it goes.
func (p *Progress) begin(d *Destination, m *Message) form {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != "" && p.id != deliveryID(d, m) {
		p.id, p.form, p.parts = "", form{}, nil
	}
	p.destination, p.message = d, m
	return p.form
}

// divide sets the form and the parts of the message, and appends the parts to
// parts. A part with the same text as before keeps its steps.
func (p *Progress) divide(f form, messages []*Message, parts []part) []part {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.parts
	if p.form = f; old == nil && len(messages) == 1 && p.onePart[0].steps == nil {
		p.onePart[0] = progressPart{messages[0], "", &p.oneSteps}
		p.parts = p.onePart[:]
		return append(parts, part{messages[0], &p.oneSteps})
	}
	p.parts = make([]progressPart, len(messages))
	for i, m := range messages {
		fresh := &p.parts[i]
		fresh.message = m
		if i < len(old) && old[i].identify() == fresh.identify() {
			fresh.steps = old[i].steps
		} else {
			fresh.steps = new(Steps)
		}
		parts = append(parts, part{m, fresh.steps})
	}
	p.onePart[0].message = nil
	return parts
}

// any reports whether a part of the message, or one of its recipients, has arrived.
func (p *Progress) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.parts, func(x progressPart) bool { return x.steps != nil && (x.steps.finished() || x.steps.anySent()) })
}

// setForm changes the form and leaves the parts as they are.
func (p *Progress) setForm(f form) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.form = f
}

// release makes p independent of the message's text and files.
func (p *Progress) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identify()
	p.destination, p.message = nil, nil
	for i := range p.parts {
		p.parts[i].message = nil
	}
}

// identify fills in the IDs.
func (p *Progress) identify() {
	if p.message != nil {
		p.id = deliveryID(p.destination, p.message)
	}
	for i := range p.parts {
		p.parts[i].identify()
	}
}

func (p *progressPart) identify() string {
	if p.id == "" && p.message != nil {
		h := newIDHash()
		h.add(p.message.Title, p.message.Body)
		p.id = h.id()
	}
	return p.id
}

// deliveryID identifies a message and the destination it goes to. The time of
// the message is not part of it.
func deliveryID(d *Destination, m *Message) string {
	h := newIDHash()
	h.add(d.Hash(), string(m.Type), string(m.Source), m.Title, m.Body)
	for _, a := range m.Attachments {
		h.add(a.Name, a.ContentType, fmt.Sprint(a.Size))
	}
	return h.id()
}

// idHash makes an ID from texts.
type idHash struct{ hash.Hash }

func newIDHash() idHash { return idHash{sha256.New()} }

func (h idHash) add(texts ...string) {
	for _, s := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // a hash takes everything
		_, _ = io.WriteString(h, s)
	}
}

func (h idHash) id() string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) }

// savedProgress is the JSON of a [Progress].
type savedProgress struct {
	ID    string      `json:"id,omitempty"`
	Form  form        `json:"form,omitzero"`
	Parts []savedPart `json:"parts,omitempty"`
}

type savedPart struct {
	ID string `json:"id"`
	savedSteps
}

// MarshalJSON returns the data that a later delivery needs to continue.
func (p *Progress) MarshalJSON() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identify()
	s := savedProgress{ID: p.id, Form: p.form, Parts: make([]savedPart, len(p.parts))}
	for i, part := range p.parts {
		s.Parts[i] = savedPart{part.id, part.steps.save()}
	}
	return json.Marshal(s)
}

// UnmarshalJSON restores a Progress from [Progress.MarshalJSON].
func (p *Progress) UnmarshalJSON(b []byte) error {
	var s savedProgress
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("reading the progress of a delivery: %w", err)
	}
	switch s.Form.Overflow {
	case "", markup.OverflowSplit, markup.OverflowTruncate:
	default:
		return fmt.Errorf("reading the progress of a delivery: unknown overflow %q", s.Form.Overflow)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.form, p.destination, p.message = s.ID, s.Form, nil, nil
	p.parts = make([]progressPart, len(s.Parts))
	for i, saved := range s.Parts {
		p.parts[i] = progressPart{id: saved.ID, steps: saved.restore()}
	}
	return nil
}

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
