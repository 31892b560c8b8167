package caddyhttp

import (
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// answer is what the client gets to read.
type answer struct {
	status  int
	err     string // "" for success
	records []notifier.Record
	results []notifier.Result

	live    *stream // what brings all but the last line, where there is one
	page    string  // the address to write another message at; "" for none
	unasked bool    // it is no answer to a message
}

// readTime is how long a client may take to read an answer, or a line of a
// stream.
const readTime = 30 * time.Second

// write sends the answer in the media type that the client prefers.
func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	var body []byte
	media := negotiate(r.Header.Values("Accept"))
	switch media {
	case mediaJSON:
		body = a.json()
	case mediaHTML:
		body = a.html()
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	case mediaStream:
		body = line(endLine{a.status, a.answerJSON()})
	default:
		body = a.text()
	}
	if a.live != nil {
		a.live.close(body)
		return
	}
	// Where the connection cannot do this, the server's timeouts count.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(readTime))
	answerHeader(w.Header(), media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // an error means that the client has gone
}

func answerHeader(h http.Header, media string) {
	if strings.HasPrefix(media, "text/") { // JSON is UTF-8 by its definition (RFC 8259)
		media += "; charset=utf-8"
	}
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
}

// timestamp is the local time in the form that clients of the older gateway
// read.
func timestamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05,000") }

// lines are the records, and the error as the last of them.
func (a *answer) lines() []notifier.Record {
	if a.err == "" {
		return a.records
	}
	return append(a.records[:len(a.records):len(a.records)], notifier.Record{Time: time.Now(), Level: notifier.LevelError, Text: a.err})
}

// text has a line for each record.
func (a *answer) text() []byte {
	var b []byte
	for _, l := range a.lines() {
		b = append(b, timestamp(l.Time)...)
		b = append(b, " ["+string(l.Level)+"] "...)
		b = append(b, oneLine.Replace(l.Text)...)
		b = append(b, '\n')
	}
	return b
}

var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

const (
	pageHead = `<!DOCTYPE html>
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
	pageFoot = "</body>\n</html>\n"
)

// html is a page with the same lines.
func (a *answer) html() []byte {
	title := "Sent"
	switch {
	case a.unasked:
		title = "There is no page here"
	case a.status == http.StatusFailedDependency && len(a.results) > 0:
		title = "Not sent to all"
	case a.err != "":
		title = "Not sent"
	}
	b := []byte(strings.ReplaceAll(pageHead, "{title}", title))
	for _, l := range a.lines() {
		b = append(b, `<li class="log_`+string(l.Level)+`"><div class="log_time">`...)
		b = append(b, timestamp(l.Time)...)
		b = append(b, `</div><div class="log_level">`+string(l.Level)+`</div><div class="log_msg">`...)
		b = append(b, html.EscapeString(l.Text)...)
		b = append(b, "</div></li>\n"...)
	}
	b = append(b, "</ul>\n"...)
	if a.page != "" {
		b = append(b, `<p><a href="`+html.EscapeString(a.page)+"\">Write another message</a></p>\n"...)
	}
	return append(b, pageFoot...)
}

// jsonAnswer is the answer as JSON. Details are what clients of the older
// gateway read: level, time and text of each record.
type jsonAnswer struct {
	Error   *string      `json:"error"`
	Details [][3]string  `json:"details"`
	Results []jsonResult `json:"results"`
}

type jsonResult struct {
	Service     string          `json:"service"`
	Destination string          `json:"destination"`
	Tags        []string        `json:"tags"`
	Status      notifier.Status `json:"status"`
	Attempts    int             `json:"attempts"`
	ElapsedMS   int64           `json:"elapsed_ms"`
	Error       *string         `json:"error"`
}

func (a *answer) json() []byte { return line(a.answerJSON()) }

func (a *answer) answerJSON() jsonAnswer {
	out := jsonAnswer{Details: make([][3]string, len(a.records)), Results: make([]jsonResult, len(a.results))}
	if a.err != "" {
		out.Error = &a.err
	}
	for i, r := range a.records {
		out.Details[i] = [3]string{string(r.Level), timestamp(r.Time), r.Text}
	}
	for i, r := range a.results {
		out.Results[i] = resultJSON(r)
	}
	return out
}

func resultJSON(r notifier.Result) jsonResult {
	j := jsonResult{
		Service: r.Service, Destination: r.Destination, Tags: r.Tags, Status: r.Status,
		Attempts: r.Attempts, ElapsedMS: r.Elapsed.Milliseconds(),
	}
	if r.Tags == nil {
		j.Tags = []string{}
	}
	if r.Err != nil {
		text := r.Err.Error()
		j.Error = &text
	}
	return j
}

// size is a number of bytes for people to read.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
