package services

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[fcm]()

// fcm pushes through Firebase Cloud Messaging, with the HTTP v1 API and the key file
// of a service account, or with a server key of the legacy API.
type fcm struct {
	apikey   string // the server key or, with oauth2, the ID of the project
	keyFile  notifier.FileParam
	account  serviceAccount
	mode     string
	oauth2   bool
	targets  []string
	priority string
	color    string
	image    int
	imageURL string
	data     map[string]string
}

const (
	fcmScope = "https://www.googleapis.com/auth/firebase.messaging"

	// Values of the parameter image. 0 means that it is not set.
	fcmImage   = 1
	fcmNoImage = 2
)

func (f *fcm) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Firebase Cloud Messaging", "https://firebase.google.com/docs/cloud-messaging/send/v1-api"
	s.Setup = "In the Firebase console under Project settings, General shows " +
		"the project ID, and Service accounts generates the private key file."
	s.Groups(notifier.GroupPhone)
	s.Words("google firebase", "android app", "gcm")
	s.URL("fcm://{apikey}/{targets...}")
	s.Limits.Body = 1024
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&f.apikey, "apikey", "ID of the project, or server key in legacy mode").Alias("project").Match(`\S`).Example("my-project-12345")
	s.List(&f.targets, "targets", "registration tokens of devices, and #topics").Alias("to").Example("#alerts")
	s.File(&f.keyFile, "keyfile", "the service account's key file: its path, or its content in base64", 16<<10).Inline(jsonFileParam).Secret()
	s.Choice(&f.mode, "mode", "", []string{"legacy", "oauth2"}, "API to use; default: oauth2 with a key file, else legacy")
	s.Choice(&f.priority, "priority", "", []string{"min", "low", "normal", "high", "max"}, "priority of the message")
	s.String(&f.color, "color", "no", "colour as #rrggbb, or yes for the colour of the message type").Normalize(fcmColor).Lenient()
	s.Enum(&f.image, "image", "", notifier.YesNo(fcmImage, fcmNoImage), "show a picture; default: yes if there is an image_url").Lenient()
	s.String(&f.imageURL, "image_url", "", "address of the picture; default: by the message's type")
	s.Map(&f.data, "+", "data_kwargs", "data field for the app")
}

var fcmHex = lazyregexp.New(`^#?([0-9a-f]{3}|[0-9a-f]{6})$`)

// fcmColor returns yes, no or a colour with # and six digits.
func fcmColor(s string) (string, error) {
	s = strings.ToLower(s)
	if m := fcmHex.FindStringSubmatch(s); m != nil {
		if x := m[1]; len(x) == 3 {
			return "#" + strings.Repeat(x[:1], 2) + strings.Repeat(x[1:2], 2) + strings.Repeat(x[2:], 2), nil
		}
		return "#" + m[1], nil
	}
	switch s {
	case "yes", "true", "on", "y":
		return "yes", nil
	case "no", "false", "off", "n":
		return "no", nil
	}
	return "", errors.New("must be yes, no or a colour such as #3aa3e3")
}

func (f *fcm) Finish(*notifier.Schema) error {
	f.oauth2 = f.mode == "oauth2" || f.mode == "" && f.keyFile.Given()
	if !f.oauth2 {
		return nil
	}
	if !f.keyFile.Given() {
		return errors.New("mode oauth2 needs keyfile, the service account's key file: its path, or its content in base64")
	}
	file := f.keyFile.Content()
	if file == nil {
		return nil // see Files.Unread
	}
	if err := f.account.load(file); err != nil {
		return err
	}
	if f.account.project != f.apikey {
		return errors.New("the key file is for another project than the URL; use the ID of its project as apikey")
	}
	return nil
}

func (f *fcm) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	shown := map[string]string{"title": m.Title, "body": m.Body}
	if image := cmp.Or(f.imageURL, m.Icon(256)); image != "" && (f.image == fcmImage || f.image == 0 && f.imageURL != "") {
		shown["image"] = image
	}
	color := map[string]string{"yes": m.Type.Color(), "no": ""}
	if strings.HasPrefix(f.color, "#") {
		color[f.color] = f.color
	}
	return c.Steps.Each(ctx, f.targets, func(ctx context.Context, target string) error {
		if !f.oauth2 {
			return f.sendLegacy(ctx, c, target, shown, color[f.color])
		}
		return f.account.do(ctx, c, &notifier.Request{
			URL:  "https://fcm.googleapis.com/v1" + notifier.Path("projects", f.account.project, "messages:send"),
			Body: notifier.JSON(map[string]any{"message": f.message(target, m.NotificationID(), shown, color[f.color])}),
		}, fcmScope)
	})
}
