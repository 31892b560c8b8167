package services

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[dot]()

// dot shows text or a picture on a device of the brand Dot., for example Quote, an
// e-ink display.
type dot struct {
	key, device, mode                         string
	refresh                                   bool
	signature, icon, image, link              string
	border, ditherType, ditherKernel, taskKey string
}

func (d *dot) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Dot.", "https://dot.mindreset.tech/docs/"
	s.Setup = "Create the API key (dot_app_…) in Dot's app, which also shows the serial number " +
		"of the device, and add the Text API or the Image API to the contents of the device."
	s.Groups(notifier.GroupHome)
	s.Words("quote/0", "e-ink", "mindreset")
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.URL("dot://{apikey}@{device_id}[/{mode}]")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>dot_app_\w+)`, Is: "an API key"},
	)
	s.Attachments = true
	s.Secret(&d.key, "apikey", "API key").Example("dot_app_0123456789abcdef")
	s.String(&d.device, "device_id", "", "serial number of the device").Example("ABCD1234ABCD")
	s.Choice(&d.mode, "mode", "text", []string{"text", "image"}, "show text and picture, or only a picture").Lenient()
	s.Bool(&d.refresh, "refresh", true, "show the message at once")
	s.String(&d.signature, "signature", "", "small text at the bottom")
	s.String(&d.icon, "icon", "", "icon beside the text, a PNG in base64")
	s.String(&d.image, "image", "", "picture, a PNG in base64; default: the first attached picture")
	s.String(&d.link, "link", "", "address to open when the device is tapped")
	s.Choice(&d.border, "border", "", []string{"0", "1"}, "frame of the picture: 0 white, 1 black").Lenient()
	s.Choice(&d.ditherType, "dither_type", "", []string{"DIFFUSION", "ORDERED", "NONE"}, "dithering of the picture").Lenient()
	s.Choice(&d.ditherKernel, "dither_kernel", "", []string{
		"THRESHOLD", "ATKINSON", "BURKES", "FLOYD_STEINBERG", "SIERRA2", "STUCKI",
		"JARVIS_JUDICE_NINKE", "DIFFUSION_ROW", "DIFFUSION_COLUMN", "DIFFUSION_2D",
	}, "dithering algorithm").Lenient()
	s.String(&d.taskKey, "task_key", "", "key of the content to replace on the device")
}

func (d *dot) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	image, files := d.picture(c, m)
	if d.mode == "image" && image == "" {
		return errors.New("there is no picture to show; attach one, or give one in the parameter image")
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

// picture returns the picture in the URL or else the first attached picture, in
// base64, or "" if there is none. In the second case it also returns the attachment.
func (d *dot) picture(c *notifier.Client, m *notifier.Message) (string, []*notifier.Attachment) {
	if d.image != "" {
		return d.image, nil
	}
	for _, a := range m.Attachments {
		if a.MediaType() == "image" {
			if len(m.Attachments) > 1 {
				c.Warn("Dot. shows only one picture; the other attachments were left out")
			}
			return notifier.Base64(a), []*notifier.Attachment{a}
		}
	}
	if len(m.Attachments) > 0 {
		c.Warn("Dot. accepts only pictures; the attachments were left out")
	}
	return "", nil
}

// post sends the fields that are not empty to the text API or the image API, as
// kind says.
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
