package services

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// telegramChat is one message on its way to one chat.
type telegramChat struct {
	*telegram
	c      *notifier.Client
	m      *notifier.Message
	id     any // a number, or a name with an @
	thread int
}

// send posts the icon, the text and the files, in the order that the URL
// asks for. A short text becomes the caption of the first file.
func (t telegramChat) send(ctx context.Context) error {
	if icon := t.m.Icon(256); t.image && icon != "" {
		if err := t.once("icon", func() error { return t.post(ctx, "sendPhoto", t.fields("photo", icon)) }); err != nil {
			t.c.Warn("Telegram has not taken the icon: %v", err)
		}
	}
	text, mode := t.text(t.m)
	caption := text != "" && len(t.m.Attachments) > 0 && utf8.RuneCountInString(text) < telegramCaption
	steps := []func() error{func() error { return t.files(ctx, "", "") }}
	switch message := func() error { return t.message(ctx, text, mode) }; {
	case caption:
		steps = []func() error{func() error { return t.files(ctx, text, mode) }}
	case text == "":
	case t.content == "after":
		steps = append(steps, message)
	default:
		steps = append([]func() error{message}, steps...)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (t telegramChat) once(key string, f func() error) error {
	return t.c.Once(fmt.Sprint(key, " ", t.id, " ", t.thread), f)
}

// fields are what every request to the chat has, and pairs of a name and a
// value.
func (t telegramChat) fields(pairs ...any) map[string]any {
	f := map[string]any{"chat_id": t.id}
	if t.thread != 0 {
		f["message_thread_id"] = t.thread
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		f[pairs[i].(string)] = pairs[i+1]
	}
	return f
}

func (t telegramChat) message(ctx context.Context, text, mode string) error {
	return t.once("text", func() error {
		p := t.fields("disable_notification", t.silent, "disable_web_page_preview", !t.preview, "text", text, "parse_mode", mode)
		err := t.post(ctx, "sendMessage", p)
		if telegramUnparsed(err) {
			t.c.Warn("Telegram cannot read the markup; the message goes as plain text")
			p["text"] = notifier.Convert(t.m.Body, t.m.Format, notifier.Text)
			delete(p, "parse_mode")
			err = t.post(ctx, "sendMessage", p)
		}
		return err
	})
}

// files sends the attachments, the first one with a caption.
func (t telegramChat) files(ctx context.Context, caption, mode string) error {
	for i, f := range t.m.Attachments {
		err := t.once(fmt.Sprint("file ", i), func() error {
			err := t.file(ctx, f, caption, mode)
			if caption != "" && telegramUnparsed(err) {
				t.c.Warn("Telegram cannot read the markup; the message goes as plain text")
				err = t.file(ctx, f, notifier.Convert(t.m.Body, t.m.Format, notifier.Text), "")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("sending file %d of %d: %w", i+1, len(t.m.Attachments), err)
		}
		caption = ""
	}
	return nil
}

func (t telegramChat) file(ctx context.Context, f *notifier.Attachment, caption, mode string) error {
	var parts []notifier.FormPart
	add := func(name, value string) { parts = append(parts, notifier.FormPart{Name: name, Value: value}) }
	if caption != "" {
		add("caption", caption)
		add("show_caption_above_media", map[bool]string{true: "True", false: "False"}[t.content == "before"])
		if mode != "" {
			add("parse_mode", mode)
		}
	}
	add("title", f.Name)
	if t.silent {
		add("disable_notification", "True")
	}
	add("chat_id", fmt.Sprint(t.id))
	if t.thread != 0 {
		add("message_thread_id", fmt.Sprint(t.thread))
	}
	kind := telegramKind(f.ContentType)
	_, err := t.call(ctx, t.c, "send"+strings.ToUpper(kind[:1])+kind[1:],
		notifier.Multipart(append(parts, notifier.FormPart{Name: kind, File: f, NoType: true})...))
	return err
}

// telegramKind is what Telegram calls a file of a content type.
func telegramKind(contentType string) string {
	switch kind := strings.ToLower(contentType); {
	case kind == "image/gif", kind == "video/h264":
		return "animation"
	case strings.HasPrefix(kind, "image/"):
		return "photo"
	case kind == "video/mp4":
		return "video"
	case kind == "audio/ogg", kind == "application/ogg":
		return "voice"
	case kind == "audio/mpeg", kind == "audio/mp4a-latm":
		return "audio"
	}
	return "document"
}

func (t telegramChat) post(ctx context.Context, method string, v any) error {
	_, err := t.call(ctx, t.c, method, notifier.JSON(v))
	return err
}
