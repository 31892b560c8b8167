package api

import (
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// page returns the page of a response in HTML for a request to a path. It has the lines of
// the plain text or, if nothing was done, the reason. sent reports whether the request was to
// send a message.
func (r *Response) page(path string, sent bool) view.ResponsePage {
	page := view.ResponsePage{Title: r.title(sent), FormURL: r.FormURL, BackURL: r.BackURL}
	if r.Error != "" && len(r.Records) == 0 && !sent {
		page.Reason = sentence(r.Error)
		if r.FormURL == "" && r.BackURL == "" {
			page.Home = RootOf(path) + "notify"
		}
	}
	for _, l := range r.lines() {
		optional := l.Optional && l.Level == notifier.LevelError
		page.Lines = append(page.Lines, view.ResponseLine{Level: string(l.Level), Optional: optional, Time: formatTime(l.Time), Text: l.Text})
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
