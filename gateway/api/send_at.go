package api

import (
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// fieldSendAt is the field of a message that is sent later. The query string may set it.
const fieldSendAt = "send_at"

// MaxDelay is how much later a message can be sent.
const MaxDelay = 30 * 24 * time.Hour

// SendAt returns when the message is to be sent; the zero time for now. delay is the duration
// that the client has asked for, or 0. clock returns the present time, if that is needed, and
// parse parses a duration. For a time that has passed, SendAt returns now and sets passed: a
// client that was cut off for a while must not lose its message.
func (q *Request) SendAt(
	clock func() time.Time, parse func(string) (time.Duration, error),
) (at time.Time, delay time.Duration, passed bool, err error) {
	text, err := q.content.text(fieldSendAt)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return at, 0, false, err
	}
	now := clock()
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		if delay, err = parse(text); err != nil {
			return at, 0, false, badField(fieldSendAt, "the field send_at must be a time with a date and a zone, "+
				"such as 2026-12-24T18:00:00+01:00, or a duration from now, such as 30m or 2d")
		}
		at = now.Add(delay)
	}
	switch {
	case at.After(now.Add(MaxDelay)):
		return at, 0, false, badField(fieldSendAt, "the field send_at is more than 30 days ahead, which is the limit")
	case !at.After(now):
		return time.Time{}, 0, true, nil
	}
	return at, delay, false, nil
}

// Wish returns whom the client wants to reach.
func (q *Request) Wish() (w message.Wish, err error) {
	if w.Tags, err = q.content.tags(); err != nil {
		return w, err
	}
	w.Values, err = q.content.values()
	w.Preferred = q.payload.preferred
	return w, err
}
