package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// matrixEventSize is how many bytes the content of an event may have: 64 KiB
// less what the server adds.
const matrixEventSize = 61536

// send writes to all rooms, whatever becomes of the others.
func (s *matrixSession) send(ctx context.Context, c *notifier.Client, x *matrix, m *notifier.Message) error {
	targets := x.targets
	if len(targets) == 0 {
		var err error
		if targets, err = s.joined(ctx, c); err != nil {
			return err
		}
	}
	var errs []error
	for _, target := range matrixUsersLast(targets) {
		errs = append(errs, c.Once("room "+target, func() error {
			room, err := s.room(ctx, c, target, x.homeOnIDs, m.Identity.Description)
			if err != nil {
				return err
			}
			events, err := s.contents(ctx, c, x, m)
			if err != nil {
				return err
			}
			for i, event := range events {
				if err := s.put(ctx, c, room, fmt.Sprintf("event %d in %s", i, target), event); err != nil {
					s.forget(target)
					return err
				}
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

func matrixUsersLast(targets []string) []string {
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a[:1], "#!"), strings.TrimLeft(b[:1], "#!"))
	})
	return targets
}

// put sends an event, under the same number when it is tried again.
func (s *matrixSession) put(ctx context.Context, c *notifier.Client, room, key string, content map[string]any) error {
	return c.Once(key, func() error {
		number, _ := notifier.Kept(c, "number of "+key, func() (string, error) { return s.event(), nil })
		if content["info"] != nil {
			content["room_id"], content["type"] = room, "m.room.message"
		}
		return s.call(ctx, c, "PUT", content, nil, "rooms", room, "send", "m.room.message", number)
	})
}

// contents are the events that the message consists of: pictures and files,
// and the text behind them.
func (s *matrixSession) contents(ctx context.Context, c *notifier.Client, x *matrix, m *notifier.Message) (events []map[string]any, err error) {
	if icon := m.Icon(32); x.image && icon != "" && s.version == "2" {
		name := m.Title
		if name == "" {
			name = string(m.Type)
		}
		events = append(events, map[string]any{"msgtype": "m.image", "url": icon, "body": name})
	}
	for i, a := range m.Attachments {
		if s.version == "2" && a.Kind() != "image" {
			c.Warn("Matrix: version 2 of the API takes pictures only; file %d is left out", i+1)
			continue
		}
		address, err := notifier.Kept(c, fmt.Sprint("file ", i), func() (string, error) { return s.upload(ctx, c, a) })
		if err != nil {
			return nil, fmt.Errorf("uploading file %d: %w", i+1, err)
		}
		event := map[string]any{"msgtype": "m.image", "url": address, "body": a.Name, "info": map[string]any{"mimetype": a.ContentType, "size": a.Size}}
		if a.Kind() != "image" {
			event["msgtype"], event["filename"] = "m.file", a.Name
		}
		events = append(events, event)
	}
	if m.Title == "" && m.Body == "" {
		return events, nil
	}
	return append(events, matrixText(c, x.msgtype, m)), nil
}

// matrixText is the event with the text, cut to what a server takes.
func matrixText(c *notifier.Client, msgtype string, m *notifier.Message) map[string]any {
	text := *m
	if text.Title != "" {
		text.Title = "# " + text.Title
	}
	body := matrixPlain(&text, "\r\n")
	event := map[string]any{"msgtype": "m." + msgtype, "body": body}
	if m.Format != notifier.Text {
		event["format"], event["formatted_body"] = "org.matrix.custom.html", matrixHTML(m)
	}
	if matrixSize(event) > matrixEventSize {
		c.Warn("Matrix: the message is longer than a server takes and was cut")
		delete(event, "format")
		delete(event, "formatted_body")
	}
	for over := matrixSize(event) - matrixEventSize; over > 0; over = matrixSize(event) - matrixEventSize {
		body = strings.ToValidUTF8(body[:max(len(body)-over, 0)], "")
		event["body"] = body
	}
	return event
}

func matrixSize(event map[string]any) int {
	text, _ := json.Marshal(event)
	return len(text)
}

// upload stores a file at the server and returns its mxc:// address.
func (s *matrixSession) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (string, error) {
	q := s.request("POST", nil, "upload")
	q.URL = strings.Replace(q.URL, "/_matrix/client/", "/_matrix/media/", 1)
	q.Query = notifier.Fields("filename", a.Name)
	q.Body = notifier.File("", a)
	var answer struct {
		Address string `json:"content_uri"`
	}
	err := s.do(ctx, c, q, &answer)
	if err == nil && answer.Address == "" {
		err = errors.New("the server does not say where the file is")
	}
	return answer.Address, err
}
