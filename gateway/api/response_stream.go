package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Stream is a response that sends each result as soon as it is known, and last the outcome of the
// whole message. The HTTP status is 200, since the outcome is not known when the stream begins.
//
// Deliveries do not wait for the client. A goroutine writes the stream; it ends with
// [Response.Write].
type Stream struct {
	format streamFormat
	parts  chan []byte // with room for all parts
	done   chan struct{}
}

// streamFormat is the format of a stream: [jsonLines] or [serverSentEvents].
type streamFormat interface {
	// begin sets the headers and returns the first part.
	begin(h http.Header, targets []notifier.Target) []byte

	result(i int, r notifier.Result) []byte
	end(r *Response) []byte

	// silence returns what is written after silenceTime without another part; nil for nothing.
	silence() []byte
}

// silenceTime is half of the 20 seconds after which some proxies and clients close an idle
// connection. Apprise API uses the same time.
const silenceTime = 10 * time.Second

// NewStream begins a stream to a client that asks for one, and returns nil for any other
// client. The caller passes the results to [Stream.Result] and sets [Response.Stream].
func NewStream(w http.ResponseWriter, r *http.Request, targets []notifier.Target) *Stream {
	var format streamFormat
	switch {
	case asksForEvents(r):
		format = &serverSentEvents{}
	case negotiate(r) == mediaStream:
		format = jsonLines{}
	default:
		return nil
	}
	s := &Stream{format: format, parts: make(chan []byte, 1+len(targets)+1), done: make(chan struct{})}
	s.parts <- format.begin(w.Header(), targets)
	w.WriteHeader(http.StatusOK)
	go s.write(w)
	return s
}

// Result sends the result of targets[i]. It does not block, and several
// goroutines may call it at once.
func (s *Stream) Result(i int, r notifier.Result) { s.parts <- s.format.result(i, r) }

func (s *Stream) write(w http.ResponseWriter) {
	defer close(s.done)
	c := http.NewResponseController(w)
	silence := time.NewTicker(silenceTime)
	defer silence.Stop()
	for {
		var part []byte
		var more bool
		select {
		case part, more = <-s.parts:
			if !more {
				return
			}
			silence.Reset(silenceTime)
		case <-silence.C:
			if part = s.format.silence(); part == nil {
				continue
			}
		}
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		// Write fails only if the client is gone. If Flush fails, the parts are
		// sent together.
		_, _ = w.Write(part)
		_ = c.Flush()
	}
}

// end writes the outcome and returns when the whole stream is written.
func (s *Stream) end(r *Response) {
	s.parts <- s.format.end(r)
	close(s.parts)
	<-s.done
}

// jsonLines is a stream of lines (application/x-ndjson), each a JSON value: first the
// destinations, then each result, and last the whole response with its HTTP status.
type jsonLines struct{}

// The lines of a stream.
type (
	beginLine struct {
		Sending []streamDestination `json:"sending"`
	}
	streamDestination struct {
		Service     string   `json:"service"`
		Destination string   `json:"destination"`
		Name        string   `json:"name"`
		Tags        []string `json:"tags"`
	}
	resultLine struct {
		Index  int            `json:"index"`
		Result message.Result `json:"result"`
	}
	endLine struct {
		Status int `json:"status"`
		responseBody
	}
)

func (jsonLines) begin(h http.Header, targets []notifier.Target) []byte {
	setHeaders(h, mediaStream)
	begin := beginLine{make([]streamDestination, len(targets))}
	for i, t := range targets {
		begin.Sending[i] = streamDestination{t.Service(), t.String(), t.Name(), message.NotNil(t.Tags)}
	}
	return jsonLine(begin)
}

func (jsonLines) result(i int, r notifier.Result) []byte {
	return jsonLine(resultLine{i, message.NewResult(r)})
}
func (jsonLines) end(r *Response) []byte { return jsonLine(endLine{r.Status, r.body()}) }
func (jsonLines) silence() []byte        { return nil }

// jsonLine returns v as one line of JSON.
func jsonLine(v any) []byte {
	b, _ := json.Marshal(v) // the types above always marshal
	return append(b, '\n')
}

// mediaEvents is the media type of server-sent events (WHATWG HTML, section 9.2).
const mediaEvents = "text/event-stream"

// asksForEvents reports whether r asks for server-sent events as the clients of Apprise API 2 do:
// by an Accept header that names them, with any preference, or by ?stream= with a value that
// Apprise takes for yes.
func asksForEvents(r *http.Request) bool {
	if accept := strings.Join(r.Header["Accept"], ","); strings.Contains(strings.ToLower(accept), mediaEvents) {
		for _, a := range parseAccept(accept) {
			if a.media == mediaEvents && a.quality > 0 {
				return true
			}
		}
	}
	if r.URL.RawQuery == "" {
		return false
	}
	yes := r.URL.Query().Get(streamQuery)
	return yes != "" && strings.ContainsRune("ay1te+", rune(strings.ToLower(yes)[0]))
}

// streamQuery is the parameter of the query that asks for a stream.
const streamQuery = "stream"

// serverSentEvents is a stream of events like that in Apprise API 2: a comment when sending begins,
// an event "log" for each log record, and last an event "result", or "error" if the gateway could
// neither send nor store the message.
type serverSentEvents struct {
	mu     sync.Mutex
	logged map[string]int // how many records with a text were written
}

// The data of the events.
type (
	logData struct {
		Level   notifier.Level `json:"level"`
		Time    string         `json:"asctime"`
		Message string         `json:"message"`
		Service *string        `json:"service"`
	}
	resultData struct {
		Status string `json:"status"`
		ID     string `json:"id,omitempty"` // ID of the message in the queue
	}
	errorData struct {
		Message string `json:"message"`
	}
)

// The words of an event "result".
const (
	eventSuccess = "SUCCESS"
	eventPartial = "PARTIAL" // some required destinations do not have the message
	eventFailure = "FAILURE" // no destination has it
)

func (e *serverSentEvents) begin(h http.Header, _ []notifier.Target) []byte {
	h.Set("Content-Type", mediaEvents)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")      // nginx must not buffer the events
	h.Set("Content-Encoding", "identity") // a handler that compresses must not buffer them either
	h.Add("Vary", "Accept")
	return []byte(": connected\n\n")
}

func (e *serverSentEvents) result(_ int, r notifier.Result) []byte {
	record := message.ResultRecord(r)
	if r.Status == message.StatusQueued {
		record = message.QueuedRecord(r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.logged == nil {
		e.logged = map[string]int{}
	}
	e.logged[record.Text]++
	return logEvent(record, &r.Service)
}

// end writes the records that are not about a result, such as warnings, and then the outcome.
func (e *serverSentEvents) end(r *Response) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b bytes.Buffer
	for _, record := range r.Records {
		if e.logged[record.Text] > 0 {
			e.logged[record.Text]--
			continue
		}
		b.Write(logEvent(record, nil))
	}
	if r.Status >= http.StatusInternalServerError {
		b.Write(event("error", errorData{r.Error}))
		return b.Bytes()
	}
	outcome := resultData{Status: eventSuccess, ID: r.ID}
	if r.Error != "" {
		outcome.Status = eventFailure
		for _, result := range r.Results {
			if result.Err == nil || result.Status == message.StatusQueued {
				outcome.Status = eventPartial
			}
		}
	}
	b.Write(event("result", outcome))
	return b.Bytes()
}

func (e *serverSentEvents) silence() []byte { return []byte(": heartbeat\n\n") }

func logEvent(r notifier.Record, service *string) []byte {
	return event("log", logData{r.Level, message.FormatTime(r.Time), r.Text, service})
}

// event returns an event with data in JSON, which has no line breaks within.
func event(name string, data any) []byte {
	return []byte("event: " + name + "\ndata: " + string(jsonLine(data)) + "\n")
}
