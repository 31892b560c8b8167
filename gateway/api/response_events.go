package api

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// mediaEvents is the media type of server-sent events (WHATWG HTML, section 9.2).
const mediaEvents = "text/event-stream"

// asksForEvents reports whether r asks for server-sent events as the clients of Apprise API
// 2 do: by an Accept header that names them, with whatever preference, or by ?stream= with
// a value that Apprise takes for yes.
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

// serverSentEvents is a stream of events as Apprise API 2 has them: a comment when sending
// begins, an event "log" for each log record, and last an event "result", or "error" where
// the gateway could neither send nor store the message.
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
		ID     string `json:"id,omitempty"` // of the message in the queue
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
	h.Set("X-Accel-Buffering", "no")      // nginx must not collect the events
	h.Set("Content-Encoding", "identity") // nor may a handler that compresses
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

// end tells the records that are not about a result, such as warnings, before the outcome.
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
