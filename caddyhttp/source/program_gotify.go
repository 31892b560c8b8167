package source

import (
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	register(Format{
		Name:    "gotify",
		Program: "Gotify",
		Doc:     "https://gotify.net/docs/pushmsg",
		Checked: "3.0.0",
		Tokens:  []TokenPlace{{Header: "X-Gotify-Key"}},
		api:     &api{paths: []string{"message"}, read: readGotify, reply: replyGotify},
	})
}

func readGotify(r *Request) (*Message, error) {
	data, err := r.jsonPayload("Gotify")
	if err != nil {
		return nil, err
	}
	field := func(name string) any {
		if v := get(data, name); v != nil {
			return v
		}
		if v := r.Query.Get(name); v != "" {
			return v
		}
		return nil
	}
	m := &Message{Title: text(field("title")), Type: gotifyType(field("priority"))}
	extras := field("extras")
	if text(get(extras, "client::display", "contentType")) == "text/markdown" {
		m.Format = "markdown"
	}
	var body lines
	body.add(text(field("message")))
	if address := text(get(extras, "client::notification", "click", "url")); isAddress(address) {
		body.add(address)
	}
	m.image(get(extras, "client::notification", "bigImageUrl"))
	m.Body = body.String()
	return m.check("Gotify", r)
}

// gotifyType returns the type for a priority from 0 to 10: failure from 8 on, where
// clients of Gotify make a loud sound, and warning from 5 on.
func gotifyType(priority any) string {
	f, ok := toFloat(priority)
	switch {
	case !ok:
		return ""
	case f >= 8:
		return string(notifier.Failure)
	case f >= 5:
		return string(notifier.Warning)
	}
	return string(notifier.Info)
}

func replyGotify(o Outcome) Reply {
	if o.Error != "" {
		return jsonReply(o.Status, map[string]any{"error": http.StatusText(o.Status), "errorCode": o.Status, "errorDescription": o.Error})
	}
	return jsonReply(http.StatusOK, map[string]any{
		"id": numericID(o.Time), "appid": 1, "message": o.Message.Body, "title": o.Message.Title, "priority": 0, "date": o.Time.UTC().Format(time.RFC3339Nano),
	})
}
