package telegram

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// delivery is one message on its way to one chat.
type delivery struct {
	*service
	c      *notifier.Client
	m      *notifier.Message
	id     any // a number, or a name with an @
	thread int
}

// deliver sends the message, to the group's new chat id where it has become a
// supergroup.
func (t delivery) deliver(ctx context.Context) error {
	err := t.send(ctx)
	if move, ok := errors.AsType[movedError](err); ok {
		t.c.Warn("Telegram: the group has become a supergroup, whose chat id is %d; write that into the URL", move.to)
		t.id = move.to
		err = t.send(ctx)
	}
	return err
}

// send posts the icon, the text and the files, in the order that the URL
// asks for. A short text becomes the caption of the first file, and one that is
// too long, and may be refused, goes first.
func (t delivery) send(ctx context.Context) error {
	text, mode := t.text(t.m)
	if text == "" && len(t.m.Attachments) == 0 {
		return errors.New("the message has no text that Telegram could show")
	}
	if icon := t.m.Icon(256); t.image && icon != "" {
		// Not with Once: what is done so may have been the text, which then is
		// not sent without its files or in parts.
		_, err := notifier.OnceValue(t.c.Steps, t.key("icon"), func() (bool, error) { return true, t.post(ctx, "sendPhoto", t.fields("photo", icon)) })
		if err != nil {
			t.c.Warn("Telegram has not taken the icon: %v", err)
		}
	}
	length := len(utf16.Encode([]rune(text)))
	switch {
	case text == "":
		return t.files(ctx, "", "")
	case length < maxCaption && len(t.m.Attachments) > 0:
		return t.files(ctx, text, mode)
	case length <= maxText && t.content == "after":
		return errors.Join(t.files(ctx, "", ""), t.message(ctx, text, mode))
	}
	if err := t.message(ctx, text, mode); err != nil {
		return err
	}
	return t.files(ctx, "", "")
}

func (t delivery) key(step string) string { return fmt.Sprint(step, " ", t.id, " ", t.thread) }

func (t delivery) once(step string, f func() error) error { return t.c.Steps.Once(t.key(step), f) }

// fields are what every request to the chat has, and pairs of a name and a
// value.
func (t delivery) fields(pairs ...any) map[string]any {
	f := map[string]any{"chat_id": t.id}
	if t.thread != 0 {
		f["message_thread_id"] = t.thread
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		f[pairs[i].(string)] = pairs[i+1]
	}
	return f
}

func (t delivery) message(ctx context.Context, text, mode string) error {
	return t.once("text", func() error {
		p := t.fields("disable_notification", t.silent, "disable_web_page_preview", !t.preview, "text", text, "parse_mode", mode)
		err := t.post(ctx, "sendMessage", p)
		if isMarkupError(err) {
			t.c.Warn("Telegram cannot read the markup; the message goes as plain text")
			p["text"] = markup.Convert(t.m.Body, t.m.Format, notifier.Text)
			delete(p, "parse_mode")
			err = t.post(ctx, "sendMessage", p)
		}
		return err
	})
}

func (t delivery) post(ctx context.Context, method string, v any) error {
	_, err := t.call(ctx, t.c, method, notifier.JSON(v))
	return err
}
