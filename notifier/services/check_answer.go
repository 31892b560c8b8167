package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// checkedDo sends a request to a service that may report an error in an answer
// with status 200, see [checkAnswer].
func checkedDo(ctx context.Context, c *notifier.Client, q *notifier.Request, code, text string, good ...int) error {
	resp, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	return checkAnswer(resp, code, text, good...)
}

// checkAnswer returns the error in a JSON answer: the field code is false, "error"
// or a number that is not in good. The field text has the reason. An answer
// without the field code is not an error.
func checkAnswer(resp *notifier.Response, code, text string, good ...int) error {
	var fields map[string]any
	if json.Unmarshal(resp.Body, &fields) != nil {
		return nil
	}
	switch v := fields[code].(type) {
	case bool:
		if v {
			return nil
		}
	case string:
		if v != "error" {
			return nil
		}
	case float64:
		if slices.Contains(good, int(v)) {
			return nil
		}
		return refusedError(int(v), fields[text])
	default:
		return nil
	}
	return refusedError(0, fields[text])
}

// refusedError returns the error for an answer that refuses the message. It
// contains code unless that is 0, and the reason, and wraps [notifier.ErrRefused].
func refusedError(code int, reason any) error {
	text := "the service refused the message"
	if code != 0 {
		text += fmt.Sprintf(" with code %d", code)
	}
	if s, ok := reason.(string); ok && s != "" {
		text += ": " + s
	} else if b, err := json.Marshal(reason); err == nil && !ok && reason != nil {
		text += ": " + string(b)
	}
	return notifier.Refused(&codeError{code, text})
}

// codeError is an answer that refuses the message with a code.
type codeError struct {
	code int
	text string
}

func (e *codeError) Error() string { return e.text }

// unlessBusy returns err, an error of [checkAnswer] or [refusedError], without its mark if the code
// is in busy: the service is busy or got too many messages, so a later attempt can succeed.
func unlessBusy(err error, busy ...int) error {
	if e, ok := errors.AsType[*codeError](err); ok && slices.Contains(busy, e.code) {
		return e
	}
	return err
}

// wrongLogin matches texts with which services refuse a password, a token or a key.
var wrongLogin = lazyregexp.New(`(?i)\b(invalid|bad|wrong|incorrect|unknown)[ _-](the )?(credentials?|` +
	`log-?in|password|user ?name|user|account|token|api[ _-]?key|key|auth)|` +
	`\b(credentials?|password|token|(api[ _-]?)?key) (is|are|was) (invalid|wrong|incorrect|not valid)|` +
	`\bunauthori[sz]ed\b|\bnot[ _-]authori[sz]ed\b|\bauth\w* (failed|failure|error)|\baccess[ _-]denied\b|\bforbidden\b`)

// textError returns the error for an answer that refuses the message with a text instead of an HTTP
// status. It is marked with [notifier.Denied] if the text is about the password, token or key.
func textError(text string) error {
	err := errors.New(text)
	if wrongLogin.MatchString(text) {
		return notifier.Denied(err)
	}
	return err
}
