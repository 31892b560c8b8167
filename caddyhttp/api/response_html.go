package api

import (
	"bytes"
	_ "embed"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
)

//go:embed response.html
var responseHTML string

var responseTemplate = NewPageTemplate("response", responseHTML)

// responsePolicy is the Content Security Policy of responses in HTML.
var responsePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:; style-src " + PageStyle

// responseLine is a line of a response in HTML.
type responseLine struct {
	Level      notifier.Level
	Optional   bool // an error of an optional destination
	Time, Text string
}

// html returns the body in HTML: a page with the lines of the plain text. sent
// reports whether the request was to send a message.
func (r *Response) html(sent bool) []byte {
	page := struct {
		Title, FormURL, BackURL string
		Lines                   []responseLine
	}{r.title(sent), r.FormURL, r.BackURL, nil}
	for _, l := range r.lines() {
		page.Lines = append(page.Lines, responseLine{l.Level, l.Optional && l.Level == notifier.LevelError, formatTime(l.Time), l.Text})
	}
	var b bytes.Buffer
	_ = responseTemplate().Execute(&b, page) // a buffer takes everything, and the template fits its data
	return b.Bytes()
}

func (r *Response) title(sent bool) string {
	switch {
	case r.Title != "":
		return r.Title
	case r.message != nil:
		return "Message " + string(r.message.State)
	case !sent:
		return "There is no page here"
	case r.Status == http.StatusFailedDependency && len(r.Results) > 0:
		return "Not sent to all"
	case r.Error != "":
		return "Not sent"
	case r.location != "":
		return "Queued"
	}
	return "Sent"
}
