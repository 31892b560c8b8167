package caddyhttp

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mediaStream is for an answer of several lines, each a JSON value, that are
// sent as soon as what they tell is known.
const mediaStream = "application/x-ndjson"

// stream tells a client of each result when it comes in. A line with the
// destinations comes first and the whole answer last; since its status is not
// known when it begins, that of the HTTP response is 200, and the last line
// holds it.
//
// Deliveries do not wait for the client: a goroutine that ends with close
// writes the lines.
type stream struct {
	lines chan []byte // with room for all
	done  chan struct{}
}

// The lines of a stream.
type (
	beginLine struct {
		Sending []destinationJSON `json:"sending"`
	}
	destinationJSON struct {
		Service     string   `json:"service"`
		Destination string   `json:"destination"`
		Tags        []string `json:"tags"`
	}
	resultLine struct {
		Index  int        `json:"index"`
		Result jsonResult `json:"result"`
	}
	endLine struct { // the last line
		Status int `json:"status"`
		jsonAnswer
	}
)

// newStream begins the answer to a client that asks for a stream, and has o
// bring it the results; for any other client it returns nil.
func newStream(w http.ResponseWriter, r *http.Request, targets []notifier.Target, o *notifier.Options) *stream {
	if negotiate(r.Header.Values("Accept")) != mediaStream {
		return nil
	}
	answerHeader(w.Header(), mediaStream)
	w.WriteHeader(http.StatusOK)
	begin := beginLine{make([]destinationJSON, len(targets))}
	for i, t := range targets {
		begin.Sending[i] = destinationJSON{t.Service(), t.String(), noNil(t.Tags)}
	}
	s := &stream{lines: make(chan []byte, 1+len(targets)+1), done: make(chan struct{})}
	s.lines <- line(begin)
	o.Done = s.result
	go s.write(w)
	return s
}

func (s *stream) write(w http.ResponseWriter) {
	defer close(s.done)
	flusher := http.NewResponseController(w)
	for l := range s.lines {
		_ = flusher.SetWriteDeadline(time.Now().Add(readTime))
		// An error means that the client has gone, or that lines cannot be sent
		// one by one: then they are sent together.
		_, _ = w.Write(l)
		_ = flusher.Flush()
	}
}

// result takes a result, of the target at that place.
func (s *stream) result(i int, r notifier.Result) { s.lines <- line(resultLine{i, resultJSON(r)}) }

// close writes the last line, and returns when all are written.
func (s *stream) close(last []byte) {
	s.lines <- last
	close(s.lines)
	<-s.done
}

// line is a JSON value on a line of its own.
func line(v any) []byte {
	b, _ := json.Marshal(v) // there is nothing in it that JSON cannot say
	return append(b, '\n')
}

func noNil(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}
