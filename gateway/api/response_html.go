package api

import (
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// page returns the HTML page of a response to a request for path. sent reports whether the request
// was to send a message: then the page shows the lines of the plain text, like the page of Apprise
// API. Otherwise it shows the reason of an error and the other records.
func (r *Response) page(path string, sent bool) view.ResponsePage {
	button := r.BackURL != ""
	page := view.ResponsePage{Title: r.title(sent), Log: !button, FormURL: r.FormURL, BackURL: r.BackURL}
	lines := r.lines()
	if r.Error != "" && (button || len(r.Records) == 0 && !sent) {
		page.Reason, lines = sentence(r.Error), r.Records
		if r.FormURL == "" && !button {
			page.Home = RootOf(path) + "notify"
		}
	}
	for _, l := range lines {
		optional := l.Optional && l.Level == notifier.LevelError
		page.Lines = append(page.Lines, view.ResponseLine{
			Level: string(l.Level), Optional: optional, Time: l.Time, Text: l.Text,
		})
	}
	return page
}

func (r *Response) title(sent bool) string {
	switch {
	case r.Title != "":
		return r.Title
	case r.message != nil:
		return "Message " + string(r.message.State)
	case !sent && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden):
		return "This page is not open to you"
	case !sent:
		return "There is no page here"
	case r.Status == http.StatusFailedDependency && len(r.Results) > 0:
		return "Not sent to all"
	case r.Error != "":
		return "Not sent"
	case r.queued:
		return "Queued"
	}
	return "Sent"
}

// sentence returns the text of an error as a sentence.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}
