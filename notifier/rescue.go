package notifier

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ErrRefused marks an error as a refusal of the message for what it is, as
// [errors.Is] finds: not of whom it comes from or goes to. The answers 400, 413,
// 414, 415 and 422 count as such by themselves; services wrap it where the other
// side says so in another way.
var ErrRefused = errors.New("the message was refused")

// Refused marks err with [ErrRefused], without a word more in its text.
func Refused(err error) error { return refusedError{err} }

type refusedError struct{ error }

func (e refusedError) Unwrap() []error { return []error{e.error, ErrRefused} }

func refused(err error) bool {
	return errors.Is(err, ErrRefused) || slices.ContainsFunc(Statuses(err), func(s *StatusError) bool {
		switch s.Code {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
			http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
			return true
		}
		return false
	})
}

// rescueParts is how many parts a text is sent in at most that was meant to
// go in one.
const rescueParts = 10

// rescue gets as much as it can to a destination that has refused the rest of
// a message: an alert is not to be lost because its text is too long, or
// because of a picture. A text beyond the limits goes in parts, or the
// beginning of it where those would be many; then the text without files. It
// is a success only where nothing of the message is missing.
func (d *delivery) rescue(ctx context.Context, t *Destination, c *Client, left outstanding, n int, err error) (int, error) {
	if parts, cut := left.inParts(t); parts != nil && refused(err) {
		n++
		first := err
		if err = parts.send(ctx, t.service, c); err == nil && cut {
			return n, fmt.Errorf("only the beginning of the text has arrived, because it was refused as a whole: %w", first)
		}
		if err == nil {
			d.record(LevelWarning, fmt.Sprintf("%s refused the text in one piece, so that it went in parts: %v", t.Service(), first))
			return n, nil
		}
		left = parts
	}
	if bare := left.withoutFiles(); bare != nil && refused(err) {
		n++
		if bare.send(ctx, t.service, c) == nil {
			return n, fmt.Errorf("the text has arrived, but not the files, which were refused: %w", err)
		}
	}
	return n, err
}

// inParts is a message that went as it is, in pieces that are within the
// limits, or its beginning. It is nil where that is no other message, or where
// something of it may have arrived already.
func (o outstanding) inParts(t *Destination) (parts outstanding, cut bool) {
	if len(o) != 1 || o[0].begun(true) || markup.Overflow(t.options.overflow) != markup.OverflowUpstream {
		return nil, false
	}
	messages := t.schema.fit(o[0].message, markup.OverflowSplit)
	if len(messages) == 1 {
		return nil, false
	}
	if cut = len(messages) > rescueParts; cut {
		messages = t.schema.fit(o[0].message, markup.OverflowTruncate)
	}
	return allOf(messages), cut
}

// withoutFiles is what has a text of what is left, without its files. It is
// nil if no file is among them, or where something of it may have arrived.
func (o outstanding) withoutFiles() (bare outstanding) {
	files := false
	for _, p := range o {
		if p.begun(false) {
			return nil // the text may have arrived with one of the files
		}
		if len(p.message.Attachments) > 0 {
			files = true
			m := *p.message
			m.Attachments = nil
			p.message = &m
		}
		if p.message.Title+p.message.Body != "" {
			bare = append(bare, p)
		}
	}
	if !files {
		return nil
	}
	return bare
}

// begun says whether a step of the part is done that must not be repeated:
// one of a target that does not have the message yet, or with targets also all
// that is done for one that has.
func (p part) begun(targets bool) bool {
	for _, result := range p.done {
		switch result.(type) {
		case struct{}:
			return true
		case targetDone:
			if targets {
				return true
			}
		}
	}
	return false
}
