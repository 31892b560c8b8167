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
	"github.com/caddy-notify/caddy-notify/gateway/message"
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

	// FormURL is the address of the page with the form for messages, linked from HTML responses; ""
	// for no link.
	FormURL string

	// BackURL is the address of the page whose button sent the request; "" for none.
	BackURL string

	// Frame surrounds an HTML response.
	Frame view.Frame

	// Title is the title of an HTML response; "" for a response about a message.
	Title string

	location string                 // of the message in the queue; "" for no header Location
	queued   bool                   // at least one delivery is not final
	applied  string                 // value of the header Preference-Applied; "" for none
	message  *message.QueuedMessage // the body of the JSON response, instead of the fields above
}

// NewResponse returns the response for a sent message: 200, or 424 if a required destination does
// not have it.
func NewResponse(report *notifier.Report) *Response {
	r := &Response{Status: http.StatusOK, Records: report.Records, Results: report.Results}
	failed := 0
	for _, result := range r.Results {
		if message.Failed(result) {
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

// minRetryAfter is the minimum time after which a program should resend a message that reached no
// destination.
const minRetryAfter = 30 * time.Second

// NewProgramResponse returns the response for a program that resends a message to all destinations
// after an error. It is 200 if at least one destination has the message or will get it, 503 if a
// resend may succeed, and otherwise 424.
func NewProgramResponse(report *notifier.Report) *Response {
	r := NewResponse(report)
	if r.Error == "" {
		return r
	}
	temporary := false
	for _, result := range r.Results {
		if result.Err == nil || result.Status == message.StatusQueued {
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
		// a ResponsePage fits its template
		body, policy, _ = view.Render(r.Frame, r.page(req.URL.Path, req.Method == http.MethodPost || r.message != nil))
		w.Header().Set("Content-Security-Policy", policy)
	case mediaStream:
		body = jsonLine(endLine{r.Status, r.body()})
	default:
		body = r.text()
	}
	// A connection that does not support deadlines keeps the server's timeouts.
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
	w.WriteHeader(r.Status)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails only if the client is gone
	}
}

// WriteAs writes another answer in place of the response, for clients of another program's API. A
// nil body means none.
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
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails only if the client is gone
}

// setHeaders sets the headers of an answer. None of the gateway's answers has Content-Length: the
// server adds it where it can, and a handler around this one may write another body.
func setHeaders(h http.Header, media string) {
	switch media { // JSON is always UTF-8 (RFC 8259, section 8.1)
	case mediaText:
		media = mediaText + "; charset=utf-8"
	case mediaHTML:
		media = mediaHTML + "; charset=utf-8"
	}
	values := []string{media, "no-store", "nosniff", "Accept"} // one allocation, not four
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = values[0:1:1], values[1:2:2], values[2:3:3]
	if vary := values[3:4:4]; len(h["Vary"]) == 0 {
		h["Vary"] = vary
	} else {
		h["Vary"] = append(h["Vary"], vary...)
	}
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
	ID      string           `json:"id,omitempty"`
	Error   *string          `json:"error"`
	Field   string           `json:"field,omitempty"`
	Details [][3]string      `json:"details"`
	Results []message.Result `json:"results"`
}

func (r *Response) body() responseBody {
	out := responseBody{ID: r.ID, Field: r.Field, Details: make([][3]string, len(r.Records)), Results: make([]message.Result, len(r.Results))}
	if r.Error != "" {
		out.Error = &r.Error
	}
	for i, record := range r.Records {
		out.Details[i] = [3]string{string(record.Level), message.FormatTime(record.Time), record.Text}
	}
	for i, result := range r.Results {
		out.Results[i] = message.NewResult(result)
	}
	return out
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
		size += len(message.TimeLayout) + len(l.Level) + len(l.Text) + len(" [] \n")
	}
	b := make([]byte, 0, size)
	for _, l := range lines {
		b = l.Time.Local().AppendFormat(b, message.TimeLayout)
		b = append(b, " ["...)
		b = append(b, l.Level...)
		b = append(b, "] "...)
		b = append(b, markup.Printable(l.Text)...)
		b = append(b, '\n')
	}
	return b
}

// formatSize formats a number of bytes, such as 8.0 MiB.
func formatSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Untold returns the decision of a rule that kept the message from everybody. It returns "" if
// somebody has the message or will get it.
func (r *Response) Untold() string {
	told := func(x notifier.Result) bool { return x.Status != notifier.Skipped || x.Rule == "" }
	if len(r.Results) == 0 || slices.ContainsFunc(r.Results, told) {
		return ""
	}
	return message.RuleText(r.Results[0].Rule, r.Results[0].By, time.Time{})
}

// SetQueued makes r the response for a message in the queue; location is its address. If a delivery
// is queued and the client prefers not to wait, the status is 202.
func (r *Response) SetQueued(id, location string, p Preference) {
	r.ID, r.location = id, location
	r.queued = slices.ContainsFunc(r.Results, func(x notifier.Result) bool { return x.Status == message.StatusQueued })
	if !r.queued {
		return
	}
	if p.Async && r.Status == http.StatusOK {
		r.Status = http.StatusAccepted
		r.applied = p.applied()
	}
}

// SetAsked makes r the response for a message that asks a question; the client reads the answer at
// location.
func (r *Response) SetAsked(id, location string) {
	r.ID, r.Status, r.location = id, http.StatusAccepted, location
}

// MessageResponse returns the response with the state of a message: its JSON is m, and its text has
// a line for each delivery.
func MessageResponse(m *message.QueuedMessage) *Response {
	return &Response{Status: http.StatusOK, message: m, Records: m.Records()}
}

// RootOf returns the address of the folder with the routes, relative to path.
func RootOf(path string) string {
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}
