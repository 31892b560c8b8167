package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// fileRef is a file that a field names by its address or holds in base64.
type fileRef struct {
	field       string // for errors
	url         string
	base64      *string // in place of url
	name        string
	contentType string
	optional    bool  // the message is sent without the file if it cannot be fetched
	link        bool  // the message is sent with the address in its text if the file cannot be fetched
	err         error // why a file with link was not fetched
}

// linkTimeout bounds the fetch of a file whose address can stand in the text instead. It is short:
// an alert does not wait for a camera that does not answer, and its sender may not wait long.
const linkTimeout = 5 * time.Second

// files are the files of a request: parts of a form, and files that fields name.
type files struct {
	limits    *message.Limits
	spool     spool.Spool
	attached  []*notifier.Attachment // the files that have arrived
	refs      []fileRef              // the files that fields name, and images
	images    []fileRef              // left out without an error if they cannot be fetched
	unfetched []fileRef              // the refs that could not be fetched, for Request.LinkFiles
}

// readRefs reads the fields that take attachments. They all mean the same, and their values add up.
// link is set in each fileRef.
func (s *files) readRefs(c *content, link bool) (refs []fileRef, err error) {
	for _, name := range attachFields {
		items, err := c.fields[name].items(name, true)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			ref := fileRef{field: i.name, url: strings.TrimSpace(i.text), link: link}
			if i.object != nil {
				if err := ref.readObject(i.object); err != nil {
					return nil, err
				}
			} else if ref.url == "" { // an empty input of a web form
				continue
			}
			err := cmp.Or(checkRef(s.limits, ref), checkCount(s.limits, len(refs)+len(s.attached)+1))
			if err != nil && !ref.link {
				return nil, err
			}
			ref.err = err
			refs = append(refs, ref)
		}
	}
	return append(refs, s.images...), nil
}

// readObject reads {"base64": …, "filename": …} or {"url": …, "filename": …}.
// Both may have a mimetype.
func (f *fileRef) readObject(object json.RawMessage) error {
	o, err := readJSON(object)
	if err != nil {
		return badField(f.field, "the field %s: %w", f.field, err)
	}
	var data string
	for _, p := range []struct {
		name string
		to   *string
	}{{"base64", &data}, {"url", &f.url}, {"filename", &f.name}, {"mimetype", &f.contentType}} {
		if *p.to, err = o[p.name].text(f.field + "." + p.name); err != nil {
			return err
		}
	}
	if !o["base64"].absent() {
		f.base64, f.url = &data, ""
	}
	return nil
}

// checkRef makes the checks that do not need the file.
func checkRef(l *message.Limits, f fileRef) error {
	switch {
	case f.base64 != nil:
		return nil
	case f.url == "":
		return badField(f.field, "the field %s must be an object with base64 or url", f.field)
	case !hasPrefixFold(f.url, "http://") && !hasPrefixFold(f.url, "https://"):
		return badField(f.field, "the field %s must be an address that begins with http:// or https:// or, in JSON, an object with base64",
			f.field)
	case !l.RemoteFiles:
		return badField(f.field, "the field %s is an address, but fetching attachments is turned off here; send the file itself", f.field)
	}
	return nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// checkCount returns an error if n attachments are too many.
func checkCount(l *message.Limits, n int) error {
	switch {
	case n <= l.MaxFiles:
		return nil
	case l.MaxFiles == 0:
		return badRequest("attachments are turned off here; send the message without files")
	}
	return badRequest("the message has too many attachments; send at most %d", l.MaxFiles)
}

// fileError returns the error for a file that could not be stored. what names the file.
func fileError(l *message.Limits, what string, err error, remote bool) error {
	switch {
	case errors.Is(err, spool.ErrTooMany):
		return checkCount(l, l.MaxFiles+1)
	case errors.Is(err, spool.ErrTooLarge):
		status := http.StatusRequestEntityTooLarge
		if remote {
			status = http.StatusBadRequest // the request itself is small
		}
		return Errorf(status, "the attachment %s is larger than %s", what, formatSize(l.MaxFileSize))
	}
	if e, ok := errors.AsType[*spool.StorageError](err); ok {
		return storageError(what, e)
	}
	return badRequest("the attachment %s: %w", what, err)
}

// maxFetches bounds how many attachments of one request are fetched at once.
const maxFetches = 4

// FetchesFiles reports whether [Request.Attachments] fetches files from
// addresses of the client.
func (q *Request) FetchesFiles() bool {
	return slices.ContainsFunc(q.files.refs, func(f fileRef) bool { return f.base64 == nil && f.err == nil })
}

// SkipFetches makes [Request.Attachments] skip the files that the message can be sent without, and
// warn of err. It reports whether no other files have to be fetched.
func (q *Request) SkipFetches(err error) bool {
	for i := range q.files.refs {
		if f := &q.files.refs[i]; f.link && f.err == nil {
			f.err = err
		}
	}
	q.files.refs = slices.DeleteFunc(q.files.refs, func(f fileRef) bool { return f.optional })
	return !q.FetchesFiles()
}

// LinkFiles adds to the text of m the addresses of files that [Request.Attachments] could not fetch
// and the names of files that it could not decode. It returns a warning about each. Only signals
// and payloads of other programs have such files, because these programs do not know that the
// gateway fetches them.
func (q *Request) LinkFiles(m *notifier.Message) (warnings []string) {
	for _, f := range q.files.unfetched {
		if f.base64 != nil {
			m.Body = appendLine(m.Body, m.Format, "\n", "Left out: "+cmp.Or(printable(f.name), f.field))
			q.warnings.add("A file is left out: %v", f.err)
		} else {
			m.Body = appendLine(m.Body, m.Format, "\n", f.url)
			q.warnings.add("The text has the address of a file that could not be fetched: %v", f.err)
		}
		warnings = append(warnings, q.warnings[len(q.warnings)-1])
	}
	return warnings
}

// Warnings returns the warnings about the request.
func (q *Request) Warnings() []string { return slices.Clone(q.warnings) }

// Attachments decodes and fetches the attachments. Those that fields name come
// first, in order, then the files of a multipart form. They can be read until
// Close.
//
// Attachments is the last step of reading a request: it can take up to
// FetchTimeout, and it releases the text of the request, so that methods that
// read fields return nothing afterwards.
func (q *Request) Attachments(ctx context.Context, pool *egress.Pool) ([]*notifier.Attachment, error) {
	defer q.releaseText()
	return q.files.all(ctx, pool)
}

// all returns the files that fields name, and then the parts of a form.
func (s *files) all(ctx context.Context, pool *egress.Pool) ([]*notifier.Attachment, error) {
	if len(s.refs) == 0 {
		return s.attached, nil
	}
	out, err := s.loadRefs(ctx, pool)
	if err != nil {
		return nil, err
	}
	for _, ref := range s.refs {
		if ref.err != nil {
			s.unfetched = append(s.unfetched, ref)
		}
	}
	out = slices.DeleteFunc(out, func(a *notifier.Attachment) bool { return a == nil }) // optional ones
	return append(out, s.attached...), nil
}

// loadRefs decodes or fetches the files that fields name, several at once. An optional file that
// cannot be fetched is nil. Any other failure ends the rest and is returned.
func (s *files) loadRefs(ctx context.Context, pool *egress.Pool) ([]*notifier.Attachment, error) {
	timeout := s.limits.FetchTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it was not fetched within %s", timeout))
	defer cancel()
	out := make([]*notifier.Attachment, len(s.refs), len(s.refs)+len(s.attached))
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
		slots = make(chan struct{}, maxFetches)
	)
	for i := range s.refs {
		ref := &s.refs[i]
		if ref.err != nil {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var err error
			out[i], err = s.load(ctx, pool, *ref)
			switch {
			case err == nil || ref.optional:
			case ref.link:
				ref.err = err
			default:
				once.Do(func() { first = err })
				cancel() // the request fails, so the other files are not needed
			}
		})
	}
	wg.Wait()
	return out, first
}

// load decodes or fetches one file.
func (s *files) load(ctx context.Context, pool *egress.Pool, ref fileRef) (*notifier.Attachment, error) {
	if ref.base64 != nil {
		return s.read(ref.field, ref.name, ref.contentType, decodeBase64(*ref.base64))
	}
	if ref.link {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, linkTimeout, fmt.Errorf("it was not fetched within %s", linkTimeout))
		defer cancel()
	}
	a, err := s.spool.Fetch(ctx, pool, s.limits.Egress, ref.url, ref.name)
	if err == nil {
		return a, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, fileError(s.limits, ref.field, err, true)
}

// read reads a file that is part of the request into the spool.
func (s *files) read(what, name, contentType string, file io.Reader) (*notifier.Attachment, error) {
	r := &errorRecorder{r: file}
	a, err := s.spool.Add(name, contentType, r)
	if err == nil {
		return a, nil
	}
	if r.err == nil {
		return nil, fileError(s.limits, what, err, false)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return nil, badField(what, "the field %s.base64 is not valid base64", what)
	}
	return nil, BodyError(r.err)
}

// errorRecorder records the error that ended the reading of r.
type errorRecorder struct {
	r   io.Reader
	err error
}

func (e *errorRecorder) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && err != io.EOF {
		e.err = err
	}
	return n, err
}

// decodeBase64 decodes base64 of either alphabet, with or without padding (RFC
// 4648, sections 4 and 5) and line breaks.
func decodeBase64(text string) io.Reader {
	text = strings.TrimRight(text, "= \t\r\n")
	return base64.NewDecoder(base64.RawStdEncoding, &standardAlphabet{text})
}

// standardAlphabet reads base64 text. It replaces the URL-safe alphabet by the
// standard one and skips white space.
type standardAlphabet struct{ text string }

func (r *standardAlphabet) Read(p []byte) (n int, err error) {
	for n < len(p) && r.text != "" {
		c := r.text[0]
		r.text = r.text[1:]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		p[n] = c
		n++
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
