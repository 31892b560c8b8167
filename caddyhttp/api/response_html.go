package api

import (
	"html"
	"net/http"
	"strings"
)

const (
	htmlHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
ul.logs { list-style: none; padding: 0; }
ul.logs li { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: .3rem .6rem; border-left: .3rem solid #3aa337; }
ul.logs li.log_WARNING { border-color: #cacf29; }
ul.logs li.log_ERROR { border-color: #a32037; }
.log_time, .log_level { font-family: ui-monospace, monospace; opacity: .8; }
.log_msg { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{title}</h1>
<ul class="logs">
`
	htmlFoot = "</body>\n</html>\n"
)

// html returns the body in HTML: a page with the lines of the plain text. sent
// reports whether the request was to send a message.
func (r *Response) html(sent bool) []byte {
	b := []byte(strings.ReplaceAll(htmlHead, "{title}", r.title(sent)))
	for _, l := range r.lines() {
		b = append(b, `<li class="log_`+string(l.Level)+`"><div class="log_time">`...)
		b = append(b, formatTime(l.Time)...)
		b = append(b, `</div><div class="log_level">`+string(l.Level)+`</div><div class="log_msg">`...)
		b = append(b, html.EscapeString(l.Text)...)
		b = append(b, "</div></li>\n"...)
	}
	b = append(b, "</ul>\n"...)
	if r.FormURL != "" {
		b = append(b, `<p><a href="`+html.EscapeString(r.FormURL)+"\">Write another message</a></p>\n"...)
	}
	return append(b, htmlFoot...)
}

func (r *Response) title(sent bool) string {
	switch {
	case !sent:
		return "There is no page here"
	case r.Status == http.StatusFailedDependency && len(r.Results) > 0:
		return "Not sent to all"
	case r.Error != "":
		return "Not sent"
	}
	return "Sent"
}
