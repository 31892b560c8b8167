package services

import (
	"context"
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
	priority  int
}

func (p *pushsafer) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushsafer", "https://www.pushsafer.com/en/pushapi"
	s.Setup = "Log in at www.pushsafer.com; the dashboard shows your private key."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "ios", "android", "windows")
	s.URL("psafer[s]://{privatekey}[/{targets...}]")
	s.Attachments, s.TextRequired = true, true
	s.Secret(&p.key, "privatekey", "private or alias key").Example("AbCdEf0123456789GhIj")
	s.List(&p.targets, "targets", "devices, device groups or guests; default: all").Alias("to")
	s.Enum(&p.sound, "sound", "", pushsaferSounds(), "sound to play, by name or number").FirstMatch()
	s.Int(&p.vibration, "vibration", 0, "how often to vibrate; 0: as set on the device").Range(0, 3)
	s.Enum(&p.priority, "priority", "normal", pushsaferPriorities, "priority of the message").Lenient()
}

func (p *pushsafer) Finish(s *notifier.Schema) error {
	p.secure = s.Scheme == "psafers"
	return nil
}

// pushsaferFields are the form fields for pictures.
var pushsaferFields = []string{"p", "p2", "p3"}

func (p *pushsafer) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	pictures := pushsaferPictures(c, m.Attachments)
	targets := p.targets
	if len(targets) == 0 {
		targets = []string{"a"}
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		form := p.form(m, target)
		for n := 0; n == 0 || n < len(pictures); n += len(pushsaferFields) {
			if n > 0 {
				form = p.form(m, target)
				form.Set("t", "")
				form.Set("m", "...")
			}
			batch := pictures[n:min(n+len(pushsaferFields), len(pictures))]
			for i, a := range batch {
				form.Set(pushsaferFields[i], "data:"+a.ContentType+";base64,"+notifier.Base64(a))
			}
			if err := c.Steps.Once(fmt.Sprint(n, " ", target), func() error { return p.post(ctx, c, notifier.Form(form, batch...)) }); err != nil {
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
	if p.priority != 0 {
		form.Set("pr", strconv.Itoa(p.priority))
	}
	return form
}

func (p *pushsafer) post(ctx context.Context, c *notifier.Client, body *notifier.Body) error {
	scheme := "http"
	if p.secure {
		scheme = "https"
	}
	var answer struct {
		Status int
		Error  string
	}
	err := c.DoJSON(ctx, &notifier.Request{URL: scheme + "://www.pushsafer.com/api", Body: body}, &answer)
	if err == nil && answer.Status != 1 {
		return refusedError(0, answer.Error)
	}
	return err
}

// pushsaferPictures returns the pictures among the files. Pushsafer accepts no
// others.
func pushsaferPictures(c *notifier.Client, files []*notifier.Attachment) (pictures []*notifier.Attachment) {
	for _, a := range files {
		if a.MediaType() == "image" {
			pictures = append(pictures, a)
			continue
		}
		c.Warn("Pushsafer accepts only pictures; a file of type %s is left out", a.ContentType)
	}
	return pictures
}
