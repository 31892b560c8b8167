package notifier

import (
	"context"
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// maxDegradedParts is the maximum number of parts of a text that the destination has refused as a
// whole. Only the beginning of a longer text is sent.
const maxDegradedParts = 10

// sendDegraded sends as much of a message as the destination accepts after it refused the whole,
// because an alert must not be lost over its length, a picture or a button. The link of a button
// moves into the text. A text beyond the limits is sent in several parts, or only its beginning if
// it would take too many. After that, the text is sent without the files. err is the refusal, and n
// the number of attempts before. The error is nil only if the whole message has arrived.
func (d *delivery) sendDegraded(ctx context.Context, t *Destination, n int, err error) (int, error) {
	f, parts := d.form, d.parts
	if refused(err) && d.movesLink(t.schema, f, parts) {
		n++
		first := err
		f.LinkInText = true
		parts = d.progress.divide(f, t.divide(nil, &d.rendered, f), nil)
		if err = sendParts(ctx, t.service, &d.client, parts); err == nil {
			d.record(LevelWarning, fmt.Sprintf("%s refused the button to acknowledge the incident; the text has the link: %s",
				t.Service(), d.text(first)))
			return n, f.loss(first)
		}
	}
	if overflow, messages := t.divideRefused(f, &d.rendered, parts); messages != nil && refused(err) {
		n++
		first := err
		f = form{Overflow: overflow, Refusal: d.text(first), LinkInText: f.LinkInText}
		parts = d.progress.divide(f, messages, nil)
		if err = sendParts(ctx, t.service, &d.client, parts); err == nil {
			if overflow == markup.OverflowSplit {
				d.record(LevelWarning, fmt.Sprintf("%s refused the text in one piece, so that it went in parts: %s", t.Service(), d.text(first)))
			}
			return n, f.loss(first)
		}
	}
	if texts := withoutFiles(f, parts); texts != nil && refused(err) {
		n++
		before := f
		f.FilesLeft, f.Refusal = true, d.text(err)
		d.progress.setForm(f)
		textErr := sendParts(ctx, t.service, &d.client, texts)
		if textErr == nil {
			return n, f.loss(err)
		}
		if nothingSent(texts) {
			d.progress.setForm(before)
		}
		if temporary(textErr) {
			err = fmt.Errorf("%w; without the files: %w", err, textErr)
		}
	}
	return n, err
}

// loss returns the error of a message that has arrived in this form, or nil if nothing of it is
// lost.
func (f form) loss(refusal error) error {
	switch {
	case f.FilesLeft:
		return fmt.Errorf("the text has arrived, but not the files, which were refused: %w", refusal)
	case f.Overflow == markup.OverflowTruncate:
		return fmt.Errorf("only the beginning of the text has arrived, because it was refused as a whole: %w", refusal)
	}
	return nil
}

// divideRefused divides the rendered message m that was refused in one piece into messages
// within the limits, or returns its beginning. It returns nil if that changes
// nothing, or if something of the message may have arrived.
func (d *Destination) divideRefused(f form, m *Message, parts []part) (markup.Overflow, []*Message) {
	if f.Overflow != "" || len(parts) != 1 || parts[0].steps.anySent() || markup.Overflow(d.options.overflow) != markup.OverflowUpstream {
		return "", nil
	}
	messages := d.schema.fit(nil, m, markup.OverflowSplit, f)
	switch n := len(messages); {
	case n == 1:
		return "", nil
	case n > maxDegradedParts:
		return markup.OverflowTruncate, d.schema.fit(nil, m, markup.OverflowTruncate, f)
	}
	return markup.OverflowSplit, messages
}

// withoutFiles returns the unfinished parts with their text only. It returns
// nil if none of them has files, or if the text may have arrived with one of the
// files.
func withoutFiles(f form, parts []part) (texts []part) {
	files := false
	for _, p := range parts {
		if p.steps.finished() {
			continue
		}
		if p.steps.partlySent() {
			return nil
		}
		files = files || len(p.message.Attachments) > 0
		texts = append(texts, part{p.message.withoutFiles(), p.steps})
	}
	if !files || f.FilesLeft {
		return nil
	}
	return texts
}

// nothingSent reports whether no target has any of the parts.
func nothingSent(parts []part) bool {
	for _, p := range parts {
		if p.steps.finished() || p.steps.anySent() {
			return false
		}
	}
	return true
}
