package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// files sends the attachments. The first one gets the caption.
func (t delivery) files(ctx context.Context, caption, mode string) error {
	for i, f := range t.m.Attachments {
		err := t.once(fmt.Sprint("file ", i), func() error {
			err := t.file(ctx, f, caption, mode)
			if caption != "" && isMarkupError(err) {
				t.c.Warn("Telegram cannot read the markup; the message is sent as plain text")
				err = t.file(ctx, f, markup.Convert(t.m.Body, t.m.Format, notifier.Text), "")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("sending file %d of %d: %w", i+1, len(t.m.Attachments), err)
		}
		caption, t.button = "", false
	}
	return nil
}

// file sends a file as picture, sound or video, or as a document if Telegram
// refuses it as such, for example because a picture has too many pixels.
func (t delivery) file(ctx context.Context, f *notifier.Attachment, caption, mode string) error {
	kind := fileKind(f)
	err := t.upload(ctx, kind, f, caption, mode)
	if kind != kindDocument && isMediaError(err) {
		t.c.Warn("Telegram refuses a file as %s; it is sent as a document: %v", kind, err)
		err = t.upload(ctx, kindDocument, f, caption, mode)
	}
	return err
}

// upload sends a file with the method for its kind.
func (t delivery) upload(ctx context.Context, kind string, f *notifier.Attachment, caption, mode string) error {
	var parts []notifier.FormPart
	add := func(name, value string) { parts = append(parts, notifier.FormPart{Name: name, Value: value}) }
	if caption != "" {
		add("caption", caption)
		add("show_caption_above_media", map[bool]string{true: "True", false: "False"}[t.content == "before"])
		if mode != "" {
			add("parse_mode", mode)
		}
	}
	if t.button && t.m.Link.URL != "" {
		text, err := json.Marshal(keyboard(t.m))
		if err != nil {
			return err
		}
		add("reply_markup", string(text))
	}
	add("title", f.Name)
	if t.silent {
		add("disable_notification", "True")
	}
	add("chat_id", fmt.Sprint(t.id))
	if t.thread != 0 {
		add("message_thread_id", fmt.Sprint(t.thread))
	}
	_, err := t.call(ctx, t.c, "send"+strings.ToUpper(kind[:1])+kind[1:],
		notifier.Multipart(append(parts, notifier.FormPart{Name: kind, File: f, NoType: true})...))
	return err
}

var mediaPattern = lazyregexp.New(`(?i)photo|image|video|animation|voice|audio`)

// isMediaError reports whether Telegram refused a file as picture, sound or
// video, as in PHOTO_INVALID_DIMENSIONS.
func isMediaError(err error) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && status.Code == 400 && mediaPattern.MatchString(status.Body) && !isMarkupError(err)
}

const (
	kindDocument = "document"

	// maxPhoto is the maximum size of a picture in bytes.
	maxPhoto = 10 << 20
)

// fileKind returns Telegram's name for files of this content type and size.
func fileKind(f *notifier.Attachment) string {
	switch kind := strings.ToLower(f.ContentType); kind {
	case "image/jpeg", "image/jpg", "image/png", "image/webp":
		if f.Size <= maxPhoto {
			return "photo"
		}
	case "image/gif", "video/h264":
		return "animation"
	case "video/mp4":
		return "video"
	case "audio/ogg", "application/ogg":
		return "voice"
	case "audio/mpeg", "audio/mp4a-latm":
		return "audio"
	}
	return kindDocument
}
