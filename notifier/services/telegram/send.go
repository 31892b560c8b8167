package telegram

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf16"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// delivery is one message to one chat.
type delivery struct {
	*service
	c      *notifier.Client
	m      *notifier.Message
	id     any // a number, or a name with an @
	thread int
	button bool // the first file has the button
}

// deliver sends the message. If the group has become a supergroup, it sends to
// the new chat id.
func (t delivery) deliver(ctx context.Context) error {
	err := t.send(ctx)
	if moved, ok := errors.AsType[movedError](err); ok {
		t.c.Warn("Telegram: the group has become a supergroup with the chat id %d; change the URL", moved.to)
		t.id = moved.to
		err = t.send(ctx)
	}
	return err
}

// send posts icon, text and files, in the order in the URL. A short text becomes
// the caption of the first file. A text that may be too long goes first, because
// Telegram may refuse it.
func (t delivery) send(ctx context.Context) error {
	if t.template.Given() {
		if err := t.rich(ctx); err != nil {
			return err
		}
		return t.files(ctx, "", "")
	}
	text, mode := t.text(t.m)
	if text == "" && len(t.m.Attachments) == 0 {
		return errors.New("the message has no text that Telegram can show")
	}
	if t.update && shown.Use(t.m) && text != "" {
		if err := t.show(ctx); err != nil {
			return err
		}
		return t.files(ctx, "", "")
	}
	if t.image {
		t.icon(ctx)
	}
	length := len(utf16.Encode([]rune(text)))
	switch {
	case text == "":
		t.button = true
		return t.files(ctx, "", "")
	case length < maxCaption && len(t.m.Attachments) > 0:
		t.button = true
		return t.files(ctx, text, mode)
	case length <= maxText && t.content == "after":
		return errors.Join(t.files(ctx, "", ""), t.message(ctx, text, mode))
	}
	if err := t.message(ctx, text, mode); err != nil {
		return err
	}
	return t.files(ctx, "", "")
}

// icon sends the picture of the message's type. If that fails, the message is
// sent without it.
func (t delivery) icon(ctx context.Context) {
	address := t.m.Icon(256)
	if address == "" {
		t.c.Warn("Telegram: image=yes has no effect, because the identity of the sender has no icon")
		return
	}
	// Not with Once: a completed step counts as the text, so that the text would
	// not be sent again without files or in parts.
	_, err := notifier.OnceValue(t.c.Steps, t.key("icon"), func() (bool, error) { return true, t.sendIcon(ctx, address) })
	if err != nil {
		t.c.Warn("Telegram refuses the icon: %v", err)
	}
}

// sendIcon uploads the picture at an address. If the gateway cannot fetch it, or
// Telegram does not accept the file as a picture, Telegram is asked to fetch it.
func (t delivery) sendIcon(ctx context.Context, address string) error {
	if resp, err := t.c.Do(ctx, &notifier.Request{URL: address}); err == nil {
		name, _, _ := strings.Cut(path.Base(address), "?")
		picture := notifier.NewAttachment(name, resp.Header.Get("Content-Type"), resp.Body)
		if fileKind(picture) == "photo" {
			return t.upload(ctx, "photo", picture, "", "")
		}
	}
	return t.post(ctx, "sendPhoto", t.fields("photo", address))
}

// key returns the key of a step of this delivery.
func (t delivery) key(step string) string { return fmt.Sprint(step, " ", t.id, " ", t.thread) }

func (t delivery) once(step string, f func() error) error { return t.c.Steps.Once(t.key(step), f) }

// fields returns the fields of every request to the chat, and those in pairs of
// name and value.
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

// message sends the text.
func (t delivery) message(ctx context.Context, text, mode string) error {
	return t.once("text", func() error {
		_, err := t.write(ctx, "sendMessage", t.m, t.fields("disable_notification", t.silent, "text", text, "parse_mode", mode))
		return err
	})
}

// write calls a method with the fields of a text, and again without markup if Telegram cannot
// read the markup of m.
func (t delivery) write(ctx context.Context, method string, m *notifier.Message, p map[string]any) (*notifier.Response, error) {
	p["disable_web_page_preview"] = !t.preview
	if m.Link.URL != "" {
		p["reply_markup"] = keyboard(m)
	}
	resp, err := t.call(ctx, t.c, method, notifier.JSON(p))
	if isMarkupError(err) {
		t.c.Warn("Telegram cannot read the markup; the message is sent as plain text")
		p["text"] = markup.Convert(m.Body, m.Format, notifier.Text)
		delete(p, "parse_mode")
		resp, err = t.call(ctx, t.c, method, notifier.JSON(p))
	}
	return resp, err
}

// maxButtons is how many answers to a question have a button each.
const maxButtons = 6

// keyboard returns the buttons of m.
// See https://core.telegram.org/bots/api#inlinekeyboardmarkup.
func keyboard(m *notifier.Message) any {
	var rows []any // of one button each, which have room for long labels
	for _, l := range m.Buttons(maxButtons) {
		rows = append(rows, []any{map[string]string{"text": l.Label, "url": l.URL}})
	}
	return map[string]any{"inline_keyboard": rows}
}

func (t delivery) post(ctx context.Context, method string, v any) error {
	_, err := t.call(ctx, t.c, method, notifier.JSON(v))
	return err
}
