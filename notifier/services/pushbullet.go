package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushbullet]()

// pushbullet pushes to the devices of a Pushbullet account, to the subscribers of
// a channel, and to e-mail addresses.
type pushbullet struct {
	token   string
	targets []string
}

const pushbulletAPI = "https://api.pushbullet.com/v2/"

func (p *pushbullet) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushbullet", "https://docs.pushbullet.com/"
	s.Setup = "Open Settings, Account in Pushbullet, choose Create Access Token and copy the token."
	s.Groups(notifier.GroupPhone)
	s.Words("android", "chrome")
	s.URL("pbul://{accesstoken}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<accesstoken>o\.[A-Za-z0-9]{32})`, Is: "an access token"},
	)
	s.Attachments = true
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Secret(&p.token, "accesstoken", "access token").Match(`\S`).Example("o.AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.List(&p.targets, "targets", "devices, #channels and e-mail addresses; default: all devices").Alias("to")
}

func (p *pushbullet) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var pushes []map[string]string
	if m.Title+m.Body != "" || len(m.Attachments) == 0 {
		push := map[string]string{"type": "note", "title": m.Title, "body": m.Body}
		if m.Link.URL != "" {
			push["type"], push["url"] = "link", m.Link.URL
		}
		pushes = append(pushes, push)
	}
	note := len(pushes)
	for _, a := range m.Attachments {
		push, err := p.upload(ctx, c, a)
		if err != nil {
			return err
		}
		pushes = append(pushes, push)
	}
	targets := p.targets
	if len(targets) == 0 {
		targets = []string{""}
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		for i, push := range pushes {
			push = maps.Clone(push)
			if channel, ok := strings.CutPrefix(target, "#"); ok {
				push["channel_tag"] = channel
			} else if strings.Index(target, "@") > 0 {
				push["email"] = target
			} else if target != "" {
				push["device_iden"] = target
			}
			// The number of a file is the same with and without a note.
			err := c.Steps.Once(fmt.Sprint(i-note, " ", target), func() error {
				return p.post(ctx, c, pushbulletAPI+"pushes", notifier.JSON(push), nil)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// upload uploads a file and returns the push that refers to it.
func (p *pushbullet) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (map[string]string, error) {
	var place struct {
		FileName  string `json:"file_name"`
		FileType  string `json:"file_type"`
		FileURL   string `json:"file_url"`
		UploadURL string `json:"upload_url"`
	}
	request := notifier.JSON(map[string]string{"file_name": a.Name, "file_type": a.ContentType})
	if err := p.post(ctx, c, pushbulletAPI+"upload-request", request, &place); err != nil {
		return nil, fmt.Errorf("requesting an upload: %w", err)
	}
	if place.FileURL == "" || place.UploadURL == "" {
		return nil, errors.New("the service's answer to the upload request has no URL")
	}
	file := notifier.Multipart(notifier.FormPart{Name: "file", File: a, NoType: true})
	if err := p.post(ctx, c, place.UploadURL, file, nil); err != nil {
		return nil, fmt.Errorf("uploading a file: %w", err)
	}
	push := map[string]string{
		"type": "file", "file_name": place.FileName, "file_type": place.FileType, "file_url": place.FileURL,
	}
	if strings.HasPrefix(place.FileType, "image/") {
		push["image_url"] = place.FileURL
	}
	return push, nil
}

// post sends body and reads the answer into v, which may be nil.
func (p *pushbullet) post(ctx context.Context, c *notifier.Client, address string, body *notifier.Body, v any) error {
	return c.DoJSON(ctx, &notifier.Request{URL: address, User: p.token, Body: body}, v)
}
