package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Stream is a response of several lines (application/x-ndjson), each a JSON
// value that is sent as soon as it is known: first the destinations, then each
// result, and last the whole response. The HTTP status is 200, since the result
// is not known when the stream begins; the last line holds the real one.
//
// Deliveries do not wait for the client. A goroutine writes the lines; it ends
// with [Response.Write].
type Stream struct {
	lines chan []byte // with room for all lines
	done  chan struct{}
}

// The lines of a stream.
type (
	beginLine struct {
		Sending []streamDestination `json:"sending"`
	}
	streamDestination struct {
		Service     string   `json:"service"`
		Destination string   `json:"destination"`
		Tags        []string `json:"tags"`
	}
	resultLine struct {
		Index  int    `json:"index"`
		Result Result `json:"result"`
	}
	endLine struct {
		Status int `json:"status"`
		responseBody
	}
)

// NewStream begins a stream to a client whose Accept headers prefer one, and
// returns nil for any other client. The caller passes the results to
// [Stream.Result] and sets [Response.Stream].
func NewStream(w http.ResponseWriter, r *http.Request, targets []notifier.Target) *Stream {
	if negotiate(r) != mediaStream {
		return nil
	}
	setHeaders(w.Header(), mediaStream)
	w.WriteHeader(http.StatusOK)
	begin := beginLine{make([]streamDestination, len(targets))}
	for i, t := range targets {
		begin.Sending[i] = streamDestination{t.Service(), t.String(), notNil(t.Tags)}
	}
	s := &Stream{lines: make(chan []byte, 1+len(targets)+1), done: make(chan struct{})}
	s.lines <- jsonLine(begin)
	go s.write(w)
	return s
}

// Result sends the result of targets[i]. It does not block, and several
// goroutines may call it at once.
func (s *Stream) Result(i int, r notifier.Result) { s.lines <- jsonLine(resultLine{i, NewResult(r)}) }

func (s *Stream) write(w http.ResponseWriter) {
	defer close(s.done)
	c := http.NewResponseController(w)
	for l := range s.lines {
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		// Write fails only if the client is gone. If Flush fails, the lines are
		// sent together.
		_, _ = w.Write(l)
		_ = c.Flush()
	}
}

// end writes the last line and returns when all lines are written.
func (s *Stream) end(last []byte) {
	s.lines <- last
	close(s.lines)
	<-s.done
}

// jsonLine returns v as one line of JSON.
func jsonLine(v any) []byte {
	b, _ := json.Marshal(v) // the types above always marshal
	return append(b, '\n')
}
