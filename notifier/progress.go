package notifier

import (
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
