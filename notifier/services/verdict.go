package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// verdict sends a request to a service that may answer with status 200 and
// say in JSON nevertheless that it did not take the message. It did not where
// the field code is false, the word error or a number other than those of
// good; the field text says why. An answer without such a field counts as consent.
func verdict(ctx context.Context, c *notifier.Client, q *notifier.Request, code, text string, good ...int) error {
	resp, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	return readVerdict(resp, code, text, good...)
}

// readVerdict is what [verdict] makes of an answer.
func readVerdict(resp *notifier.Response, code, text string, good ...int) error {
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
		return refusal(int(v), fields[text])
	default:
		return nil
	}
	return refusal(0, fields[text])
}

// refusal is the error for an answer whose code, unless it is 0, and reason
// say that the service did not take the message.
func refusal(code int, reason any) error {
	text := "the service refused the message"
	if code != 0 {
		text += fmt.Sprintf(" with code %d", code)
	}
	if s, ok := reason.(string); ok && s != "" {
		text += ": " + s
	} else if b, err := json.Marshal(reason); err == nil && !ok && reason != nil {
		text += ": " + string(b)
	}
	return notifier.Refused(errors.New(text))
}
