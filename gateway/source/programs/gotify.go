package programs

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	source.Register(source.Format{
		Name:    "gotify",
		Program: "Gotify",
		Doc:     "https://gotify.net/docs/pushmsg",
		Checked: "3.0.0",
		Has:     []string{"message", "priority|extras?"},
		API: &source.API{
			Endpoints: []source.Endpoint{
				{Paths: []string{"", "message"}, Read: readGotify, Reply: replyGotify},
				{Methods: compose.GetMethods, Paths: []string{"version"}, Reply: replyGotifyVersion, Public: true},
				{Methods: compose.GetMethods, Paths: []string{"health"}, Reply: replyGotifyHealth, Public: true},
			},
			Images: true,
		},
	})
}

func readGotify(_ context.Context, r *source.Request) (*source.Message, error) {
	r.ReadQuery() // Gotify's server reads a form from both
	data, err := r.JSONPayload("Gotify")
	if err != nil {
		return nil, err
	}
	field := func(name string) any {
		if v := payload.Get(data, name); v != nil {
			return v
		}
		if v := r.Query.Get(name); v != "" {
			return v
		}
		return nil
	}
	message := payload.Text(field("message"))
	if strings.TrimSpace(message) == "" {
		return nil, source.Errorf(http.StatusBadRequest, "the field message is required")
	}
	m := &source.Message{Title: payload.Text(field("title"))}
	priority := field("priority")
	if _, ok := payload.Float(priority); !ok && priority != nil {
		m.Warnings = append(m.Warnings, "the field priority is no number, so it has no effect; Gotify has priorities from 0 to 10")
	}
	compose.SetType(m, gotifyType(priority), compose.StateOfText(m.Title, message))
	extras := field("extras")
	if payload.Text(payload.Get(extras, "client::display", "contentType")) == "text/markdown" {
		m.Format = "markdown"
	}
	var body compose.Lines
	body.Add(message)
	if address := payload.Text(payload.Get(extras, "client::notification", "click", "url")); source.IsAddress(address) {
		body.Add(address)
	}
	compose.AddImage(m, payload.Get(extras, "client::notification", "bigImageUrl"))
	m.Body = body.String()
	compose.Echo(m, "message", message)
	compose.Echo(m, "title", cmp.Or(m.Title, gotifyApp))
	compose.Echo(m, "priority", payload.Int(priority))
	compose.Echo(m, "extras", extras)
	return compose.CheckContent(m, "Gotify", r)
}

// gotifyApp is the name of the application, which answers have as the title of messages without
// one.
const gotifyApp = "caddy-notify"

// gotifyType returns the type for a priority from 0 to 10: failure from 8, because clients of
// Gotify make a loud sound then, and warning from 5.
func gotifyType(priority any) notifier.Type {
	f, ok := payload.Float(priority)
	switch {
	case !ok:
		return ""
	case f >= 8:
		return notifier.Failure
	case f >= 5:
		return notifier.Warning
	}
	return notifier.Info
}

// replyGotify answers with the message or an error.
func replyGotify(o source.Outcome) source.Reply {
	if o.Error != "" {
		return compose.JSONReply(o.Status, map[string]any{"error": http.StatusText(o.Status), "errorCode": o.Status, "errorDescription": o.Error})
	}
	out := map[string]any{"id": compose.NumericID(o, 12), "appid": 1, "date": o.Time.UTC().Format(time.RFC3339Nano)}
	maps.Copy(out, o.Message.Echo)
	return compose.JSONReply(http.StatusOK, out)
}

// replyGotifyVersion answers with the version of Gotify that this API follows. Clients ask for it
// when they are set up.
func replyGotifyVersion(source.Outcome) source.Reply {
	return compose.JSONReply(http.StatusOK, map[string]any{"version": source.Lookup("gotify").Checked, "commit": "", "buildDate": ""})
}

func replyGotifyHealth(source.Outcome) source.Reply {
	return compose.JSONReply(http.StatusOK, map[string]any{"health": "green", "database": "green"})
}
