package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// Request is a request to send one message, with its mappings applied. It owns
// everything that the request allocates until Close. Read it in this order:
//
//	Message, or Draft                title, body, type, format and incident
//	SelectTags or SelectURLs         where it goes
//	Fingerprint, FetchesFiles        what must be known before its files
//	Attachments, then LinkFiles      its files
type Request struct {
	limits   message.Limits
	began    time.Time         // when the request came in
	content  content           // its fields
	texts    textReader        // reads its texts
	files    files             // reads its files
	payload  payload           // of a request in another format
	warnings warnings          // for the report
	leftOut  string            // what is left out of the text of a signal; "" for nothing
	lost     []string          // names of files that are left out of a signal
	opened   []notifier.Target // destinations made from the request's URLs, or with its values
}

// warnings are warnings for a client, in the order in which they occur.
type warnings []string

// add adds a warning.
func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// Read reads the query string and the body of r. Files of a multipart form are
// kept in memory up to 1 MiB each, if there is room, and otherwise in temporary
// files. If the request is malformed or exceeds a limit, or if there is no room
// for it, Read returns an [*Error].
func Read(w http.ResponseWriter, r *http.Request, l message.Limits) (*Request, error) {
	q := newRequest(l)
	if err := (&requestReader{q, w, r}).read(); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func newRequest(l message.Limits) *Request {
	q := &Request{limits: l, began: time.Now()}
	q.texts.limits, q.files.limits = &q.limits, &q.limits
	q.files.spool = spool.Spool{MaxSize: l.MaxFileSize, MaxCount: l.MaxFiles, Memory: q.Memory()}
	return q
}

// Close closes the destinations made from the request's URLs and removes its
// temporary files. Attachments of the message cannot be read afterwards.
// Further calls do nothing.
func (q *Request) Close() {
	for _, t := range q.opened {
		t.Close()
	}
	q.opened = nil
	q.releaseText()
	_ = q.files.spool.Close() // it returns no error
	q.limits.Memory.Close()
}

// Memory returns what the request holds in memory.
func (q *Request) Memory() *memory.Allocation { return &q.limits.Memory }

// Distrust counts what the request holds as that of a client's message with URLs. If there
// is no room for it, Distrust returns an [*Error].
func (q *Request) Distrust() error {
	if !q.limits.Memory.Distrust() {
		return errNoMemory(q.limits.Memory.Max())
	}
	return nil
}

// releaseText drops the fields of the request, which can take as much memory
// as the body. A message has copies of what it needs.
func (q *Request) releaseText() {
	if q.content.raw != nil {
		putBuffer(q.content.raw)
	}
	q.content, q.files.attached, q.files.refs = content{}, nil, nil
}
