package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// call calls a method of the bot API.
func (t *service) call(ctx context.Context, c *notifier.Client, method string, body *notifier.Body) (*notifier.Response, error) {
	resp, err := c.Do(ctx, &notifier.Request{Method: "POST", URL: "https://api.telegram.org/bot" + t.token + "/" + method, Body: body})
	var answer struct {
		OK          *bool  `json:"ok"`
		Description string `json:"description"`
		Parameters  struct {
			RetryAfter float64 `json:"retry_after"`
			MigrateTo  int64   `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if resp != nil {
		_ = json.Unmarshal(resp.Body, &answer)
	}
	// Telegram has the delay for a retry in the body, not in a header.
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && status.RetryAfter == 0 {
		status.RetryAfter = time.Duration(answer.Parameters.RetryAfter * float64(time.Second))
	}
	if err == nil && answer.OK != nil && !*answer.OK {
		err = fmt.Errorf("Telegram answered: %s", answer.Description)
	}
	if id := answer.Parameters.MigrateTo; err != nil && id != 0 {
		err = movedError{err, id}
	}
	return resp, err
}

// movedError is returned when the group has become a supergroup, with another
// chat id.
type movedError struct {
	error
	to int64
}

func (e movedError) Unwrap() error { return e.error }

// isMarkupError reports whether Telegram refused a message because of its markup.
func isMarkupError(err error) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && status.Code == 400 && strings.Contains(status.Body, "can't parse entities")
}
