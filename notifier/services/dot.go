package services

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[dot]()

// dot shows a text or a picture on a Dot. Quote, a display with e-ink.
type dot struct {
	key, device, mode                         string
	refresh                                   bool
	signature, icon, image, link              string
	border, ditherType, ditherKernel, taskKey string
}

func (d *dot) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Dot.", "https://dot.mindreset.tech/docs/"
	s.URL("dot://{apikey}@{device_id}[/{mode}]")
	s.Attachments = true
	s.Secret(&d.key, "apikey", "API key").Example("dot_app_0123456789abcdef")
	s.String(&d.device, "device_id", "", "serial number of the device").Example("ABCD1234ABCD")
	s.Choice(&d.mode, "mode", "text", []string{"text", "image"}, "show text and picture, or a picture alone").Lenient()
	s.Bool(&d.refresh, "refresh", true, "show the message at once")
	s.String(&d.signature, "signature", "", "small text at the bottom")
	s.String(&d.icon, "icon", "", "picture beside the text, a PNG in base64")
	s.String(&d.image, "image", "", "picture, a PNG in base64; else the first attached one")
	s.String(&d.link, "link", "", "address that a touch of the device opens")
	s.Choice(&d.border, "border", "", []string{"0", "1"}, "frame of the picture: 0 white, 1 black").Lenient()
	s.Choice(&d.ditherType, "dither_type", "", []string{"DIFFUSION", "ORDERED", "NONE"}, "how the picture's greys are made").Lenient()
	s.Choice(&d.ditherKernel, "dither_kernel", "", []string{
		"THRESHOLD", "ATKINSON", "BURKES", "FLOYD_STEINBERG", "SIERRA2", "STUCKI",
		"JARVIS_JUDICE_NINKE", "DIFFUSION_ROW", "DIFFUSION_COLUMN", "DIFFUSION_2D",
	}, "algorithm by which the greys are spread").Lenient()
	s.String(&d.taskKey, "task_key", "", "key of the content in the device's loop to replace")
}

func (d *dot) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	image, files := d.picture(c, m)
	if d.mode == "image" && image == "" {
		return errors.New("there is no picture to show; attach one, or name one with the parameter image")
	}
	if d.mode == "text" && m.Title+m.Body != "" {
		err := c.Steps.Once("text", func() error {
			return d.post(ctx, c, "text", nil, map[string]string{
				"title": m.Title, "message": m.Body, "signature": d.signature, "icon": d.icon,
			})
		})
		if err != nil {
			return err
		}
	}
	if image == "" {
		return nil
	}
	return d.post(ctx, c, "image", files, map[string]string{
		"image": image, "border": d.border, "ditherType": d.ditherType, "ditherKernel": d.ditherKernel,
	})
}

// picture is the picture to show, or "": the URL's or else the first attached.
func (d *dot) picture(c *notifier.Client, m *notifier.Message) (string, []*notifier.Attachment) {
	if d.image != "" {
		return d.image, nil
	}
	for _, a := range m.Attachments {
		if a.MediaType() == "image" {
			if len(m.Attachments) > 1 {
				c.Warn("Dot. shows one picture only; other attachments were left out")
			}
			return notifier.Base64(a), []*notifier.Attachment{a}
		}
	}
	if len(m.Attachments) > 0 {
		c.Warn("Dot. takes no files but pictures; the attachments were left out")
	}
	return "", nil
}

// post sends the fields that are not empty.
func (d *dot) post(ctx context.Context, c *notifier.Client, kind string, files []*notifier.Attachment, fields map[string]string) error {
	payload := map[string]any{"refreshNow": d.refresh}
	fields["link"], fields["taskKey"] = d.link, d.taskKey
	for name, value := range fields {
		switch {
		case value == "":
		case name == "border":
			payload[name] = json.Number(value)
		default:
			payload[name] = value
		}
	}
	_, err := c.Do(ctx, &notifier.Request{
		URL:    "https://dot.mindreset.tech/api/authV2/open/device" + notifier.Path(d.device, kind),
		Header: map[string]string{"Authorization": "Bearer " + d.key},
		Body:   notifier.JSON(payload, files...),
	})
	return err
}
