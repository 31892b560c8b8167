package api

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Response is the response to a request.
type Response struct {
	// Status is the HTTP status.
	Status int

	// Error says why the request failed; "" for success.
	Error string

	// Field is the name of the field of the request that is wrong; "" for none.
	Field string

	// RetryAfter is the value of the header Retry-After, in whole seconds; 0
	// for no header.
	RetryAfter time.Duration

	// Records are the log lines of the deliveries.
	Records []notifier.Record

	// Results are the outcomes of the deliveries, in the order of the URLs.
	Results []notifier.Result

	// ID is the ID of the message in the queue; "" without a queue.
	ID string

	// Stream, if set, has begun the response, and Write ends it.
	Stream *Stream

	// FormURL is the address of the page with a form for messages, for the
	// link in HTML responses; "" for no link.
	FormURL string

	// BackURL is the address of the page whose button sent the request; "" for none.
	BackURL string

	// Frame surrounds a response in HTML.
	Frame view.Frame

	// Title is the title of a response in HTML; "" for one about a message.
	Title string

	location string         // of the message in the queue; "" for no header Location
	queued   bool           // a delivery is not final
	applied  string         // value of the header Preference-Applied; "" for none
	message  *QueuedMessage // the body of the JSON, instead of the fields above
}

// NewResponse returns the response for a message that was sent: 200, or 424 if
// a destination that is not optional does not have it.
func NewResponse(report *notifier.Report) *Response {
	r := &Response{Status: http.StatusOK, Records: report.Records, Results: report.Results}
	failed := 0
	for _, result := range r.Results {
		if Failed(result) {
			failed++
		}
	}
	if failed > 0 {
		r.Status = http.StatusFailedDependency
		r.Error = fmt.Sprintf("%d of %d notifications could not be sent", failed, len(r.Results))
	}
	return r
}

// Warn adds warnings to the log lines.
func (r *Response) Warn(warnings []string) {
	for _, text := range warnings {
		r.Records = append(r.Records, notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: text})
	}
}

// MessageIDHeader is the header of a response with the ID of the message.
const MessageIDHeader = "X-Message-Id"

// minRetryAfter is the minimum time after which a program should send a message again
// that no destination has.
const minRetryAfter = 30 * time.Second

// NewProgramResponse returns the response for a message of a program that sends it
// again, to all destinations, after an error: 200 if at least one destination has
// the message or will get it. If none has it, the status is 503 if the message may
// arrive when it is sent again, and otherwise 424.
func NewProgramResponse(report *notifier.Report) *Response {
	r := NewResponse(report)
	if r.Error == "" {
		return r
	}
	temporary := false
	for _, result := range r.Results {
		if result.Err == nil || result.Status == StatusQueued {
			r.Records = append(slices.Clip(r.Records), notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: r.Error + "."})
			r.Status, r.Error = http.StatusOK, ""
			return r
		}
		if result.Temporary {
			temporary = true
			r.RetryAfter = max(r.RetryAfter, result.RetryAfter)
		}
	}
	if temporary {
		r.Status, r.RetryAfter = http.StatusServiceUnavailable, max(r.RetryAfter, minRetryAfter)
		r.Error += "; send the message again later"
	}
	return r
}

// writeTimeout bounds how long a client may take to read a response, or one
// line of a stream.
const writeTimeout = 30 * time.Second

// Write writes the response in the format that the Accept headers of req
// prefer: plain text, JSON or HTML, or as the end of a [Stream]. An
// error is JSON as well if req is JSON and has no Accept header: programs that
// send JSON without one decode the body of an error.
func (r *Response) Write(w http.ResponseWriter, req *http.Request) {
	if r.Stream != nil {
		r.Stream.end(r)
		return
	}
	var body []byte
	media := negotiate(req)
	if r.Error != "" && !accepts(req) && sendsJSON(req) {
		media = mediaJSON
	}
	if media == mediaStream && r.message != nil {
		media = mediaJSON // nothing comes later
	}
	switch media {
	case mediaJSON:
		body = r.JSON()
	case mediaHTML:
		var policy string
		body, policy, _ = view.Render(r.Frame, r.page(req.URL.Path, req.Method == http.MethodPost || r.message != nil)) // a ResponsePage fits its template
		w.Header().Set("Content-Security-Policy", policy)
	case mediaStream:
		body = jsonLine(endLine{r.Status, r.body()})
	default:
		body = r.text()
	}
	// A connection that does not support this has the server's timeouts.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	setHeaders(w.Header(), media)
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
	if r.location != "" {
		w.Header().Set("Location", r.location)
		w.Header().Set(MessageIDHeader, r.ID)
	}
	if r.applied != "" {
		w.Header().Set("Preference-Applied", r.applied)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.Status)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails only if the client is gone
	}
}

// WriteAs writes another answer in place of the response, for clients of the API
// of another program. A body of nil is none.
func (r *Response) WriteAs(w http.ResponseWriter, status int, contentType string, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails only if the client is gone
}

func setHeaders(h http.Header, media string) {
	if strings.HasPrefix(media, "text/") { // JSON is always UTF-8 (RFC 8259, section 8.1)
		media += "; charset=utf-8"
	}
	values := []string{media, "no-store", "nosniff"} // one allocation, not three
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = values[0:1:1], values[1:2:2], values[2:3:3]
	h.Add("Vary", "Accept")
}

// JSON returns the JSON body of the response, with a line break at the end.
func (r *Response) JSON() []byte {
	if r.message != nil {
		return jsonLine(r.message)
	}
	return jsonLine(r.body())
}

// responseBody is the JSON body of a response. Clients of Apprise API read
// details: level, time and text of each record.
type responseBody struct {
	ID      string      `json:"id,omitempty"`
	Error   *string     `json:"error"`
	Field   string      `json:"field,omitempty"`
	Details [][3]string `json:"details"`
	Results []Result    `json:"results"`
}

func (r *Response) body() responseBody {
	out := responseBody{ID: r.ID, Field: r.Field, Details: make([][3]string, len(r.Records)), Results: make([]Result, len(r.Results))}
	if r.Error != "" {
		out.Error = &r.Error
	}
	for i, record := range r.Records {
		out.Details[i] = [3]string{string(record.Level), formatTime(record.Time), record.Text}
	}
	for i, result := range r.Results {
		out.Results[i] = NewResult(result)
	}
	return out
}

// Result is the outcome of one delivery, as JSON responses have it.
type Result struct {
	Service     string          `json:"service"`
	Destination string          `json:"destination"`    // the URL with its secrets masked
	Name        string          `json:"name,omitempty"` // what people call the destination, with its tags
	Tags        []string        `json:"tags"`
	Status      notifier.Status `json:"status"`
	Attempts    int             `json:"attempts"`
	ElapsedMS   int64           `json:"elapsed_ms"`
	Error       *string         `json:"error"`              // null for success
	Optional    bool            `json:"optional,omitempty"` // a failure does not count

	// Rule says why nothing was sent, or why it is sent later. By is the ID of the message
	// that is sent instead, and Until is when it is sent.
	Rule  notifier.Rule `json:"rule,omitempty"`
	By    string        `json:"by,omitempty"`
	Until *time.Time    `json:"until,omitempty"`

	// Step is the number of the step that it waits for, and Next is when that begins if
	// nobody acknowledges the incident before.
	Step int        `json:"step,omitempty"`
	Next *time.Time `json:"next,omitempty"`
}

// NewResult returns the JSON form of a result.
func NewResult(r notifier.Result) Result {
	out := Result{
		Service: r.Service, Destination: r.Destination, Name: NameOf(r), Tags: notNil(r.Tags), Status: r.Status,
		Attempts: r.Attempts, ElapsedMS: r.Elapsed.Milliseconds(), Optional: r.Optional, Rule: r.Rule, By: r.By,
	}
	if !r.Until.IsZero() && r.Rule == notifier.RuleEscalating {
		out.Step, out.Next = r.Step, &r.Until
	} else if !r.Until.IsZero() {
		out.Until = &r.Until
	}
	if r.Err != nil {
		text := r.Err.Error()
		out.Error = &text
	}
	return out
}

// NameOf returns the name of the destination of a result, with its tags.
func NameOf(r notifier.Result) string {
	name := r.Name
	if name == "" {
		name = notifier.NameOf(r.Service, r.Destination)
	}
	return notifier.NameWithTags(name, r.Tags)
}

// SetName sets the name of the destination.
func (r *Result) SetName() {
	r.Name = notifier.NameWithTags(notifier.NameOf(r.Service, r.Destination), r.Tags)
}

// notNil returns tags so that JSON has an array in any case.
func notNil(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}

// lines returns the records, and the error as the last of them.
func (r *Response) lines() []notifier.Record {
	if r.Error == "" {
		return r.Records
	}
	return append(slices.Clip(r.Records), notifier.Record{Time: time.Now(), Level: notifier.LevelError, Text: r.Error})
}

// text returns the body in plain text: a line for each record.
func (r *Response) text() []byte {
	lines, size := r.lines(), 0
	for _, l := range lines {
		size += len(timeLayout) + len(l.Level) + len(l.Text) + len(" [] \n")
	}
	b := make([]byte, 0, size)
	for _, l := range lines {
		b = l.Time.Local().AppendFormat(b, timeLayout)
		b = append(b, " ["...)
		b = append(b, l.Level...)
		b = append(b, "] "...)
		b = append(b, markup.Printable(l.Text)...)
		b = append(b, '\n')
	}
	return b
}

// timeLayout is the layout of times in responses, which is that of Apprise API.
const timeLayout = "2006-01-02 15:04:05,000"

// formatTime formats t with timeLayout, in local time.
func formatTime(t time.Time) string { return t.Local().Format(timeLayout) }

// formatSize formats a number of bytes, such as 8.0 MiB.
func formatSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
