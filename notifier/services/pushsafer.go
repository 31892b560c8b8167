package services

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushsafer]()

// pushsafer pushes to the devices of a Pushsafer account.
type pushsafer struct {
	secure    bool
	key       string
	targets   []string
	sound     int
	vibration int
}

func (p *pushsafer) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushsafer", "https://www.pushsafer.com/en/pushapi"
	s.URL("psafer[s]://{privatekey}[/{targets...}]")
	s.Attachments = true
	s.Secret(&p.key, "privatekey", "private or alias key")
	s.List(&p.targets, "targets", "devices, device groups or guests; default: all").Alias("to")
	s.Enum(&p.sound, "sound", "", pushsaferSounds(), "sound to play, by name or number")
	s.Int(&p.vibration, "vibration", 0, "how often to vibrate; 0 for the device's setting").Range(0, 3)
}

func (p *pushsafer) Finish(s *notifier.Schema) error {
	p.secure = s.Scheme == "psafers"
	return nil
}

// pushsaferPictures are the fields that a request has for pictures.
var pushsaferPictures = []string{"p", "p2", "p3"}

func (p *pushsafer) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	pictures, err := pushsaferData(c, m.Attachments)
	if err != nil {
		return err
	}
	targets := p.targets
	if len(targets) == 0 {
		targets = []string{"a"}
	}
	return c.Each(ctx, targets, func(ctx context.Context, target string) error {
		form := p.form(m, target)
		for n := 0; n == 0 || n < len(pictures); n += len(pushsaferPictures) {
			if n > 0 {
				form = p.form(m, target)
				form.Set("t", "")
				form.Set("m", "...")
			}
			for i, data := range pictures[n:min(n+len(pushsaferPictures), len(pictures))] {
				form.Set(pushsaferPictures[i], data)
			}
			if err := c.Once(fmt.Sprint(n, " ", target), func() error { return p.post(ctx, c, form) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *pushsafer) form(m *notifier.Message, target string) url.Values {
	form := notifier.Fields("k", p.key, "d", target, "t", m.Title, "m", m.Body, "i", "25", "c", m.Type.Color())
	if p.sound > 0 {
		form.Set("s", strconv.Itoa(p.sound%pushsaferSilent))
	}
	if p.vibration > 0 {
		form.Set("v", strconv.Itoa(p.vibration))
	}
	return form
}

func (p *pushsafer) post(ctx context.Context, c *notifier.Client, form url.Values) error {
	scheme := "http"
	if p.secure {
		scheme = "https"
	}
	var answer struct {
		Status int
		Error  string
	}
	err := c.DoJSON(ctx, &notifier.Request{URL: scheme + "://www.pushsafer.com/api", Body: notifier.Form(form)}, &answer)
	if err == nil && answer.Status != 1 {
		return refusal(0, answer.Error)
	}
	return err
}

// pushsaferData makes data URLs of the pictures among the files, which is all
// that the service shows.
func pushsaferData(c *notifier.Client, files []*notifier.Attachment) (pictures []string, err error) {
	for _, a := range files {
		if a.Kind() != "image" {
			c.Warn("Pushsafer shows pictures only; a file of type %s is left out.", a.ContentType)
			continue
		}
		data, err := a.ReadAll()
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, "data:"+a.ContentType+";base64,"+base64.StdEncoding.EncodeToString(data))
	}
	return pictures, nil
}
