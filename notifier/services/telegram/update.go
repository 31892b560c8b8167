package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// show shows the message by changing the one with its incident. See
// https://core.telegram.org/bots/api#editmessagetext.
func (t delivery) show(ctx context.Context) error {
	_, err := t.shown.Tell(ctx, t.c, t.m, shown.Chat{
		Place: fmt.Sprint(t.id, " ", t.thread),
		Post: func(ctx context.Context, m *notifier.Message) (shown.Ref, error) {
			return t.writeNew(ctx, m, t.fields())
		},
		Edit: func(ctx context.Context, r shown.Ref, m *notifier.Message) error {
			id, err := strconv.Atoi(r.ID)
			if err != nil {
				return shown.ErrGone
			}
			text, mode := t.text(m)
			_, err = t.write(ctx, "editMessageText", m, map[string]any{"chat_id": t.id, "message_id": id, "text": text, "parse_mode": mode})
			if status, ok := errors.AsType[*notifier.StatusError](err); ok && status.Code == 400 {
				switch {
				case strings.Contains(status.Body, "message is not modified"):
					return nil
				case strings.Contains(status.Body, "message to edit not found"), strings.Contains(status.Body, "message can't be edited"):
					return shown.ErrGone
				}
			}
			return err
		},
		Reply: func(ctx context.Context, r shown.Ref, m *notifier.Message) error {
			id, _ := strconv.Atoi(r.ID) // Edit has checked it
			_, err := t.writeNew(ctx, m, t.fields("reply_parameters", map[string]any{"message_id": id, "allow_sending_without_reply": true}))
			return err
		},
	})
	return err
}

// writeNew sends the text of m with further fields.
func (t delivery) writeNew(ctx context.Context, m *notifier.Message, p map[string]any) (shown.Ref, error) {
	p["disable_notification"] = t.silent
	p["text"], p["parse_mode"] = t.text(m)
	resp, err := t.write(ctx, "sendMessage", m, p)
	if err != nil {
		return shown.Ref{}, err
	}
	var answer struct {
		Result struct {
			ID json.Number `json:"message_id"`
		} `json:"result"`
	}
	_ = resp.JSON(&answer) // without an ID, the next message is a new one
	return shown.Ref{ID: answer.Result.ID.String()}, nil
}
