package caddyhttp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// source is a file that a request names in a field, and that is yet to be
// decoded or fetched.
type source struct {
	at          string // the field, for errors
	url         string
	base64      *string
	name        string
	contentType string
}

// readSources reads the fields that take attachments. All their names mean
// the same and add up.
func (q *request) readSources() error {
	for _, name := range attachFields {
		items, array, err := q.fields[name].items(name, true)
		if err != nil {
			return err
		}
		for i, item := range items {
			s := source{at: name}
			if array || len(items) > 1 {
				s.at = fmt.Sprintf("%s[%d]", name, i)
			}
			switch item := item.(type) {
			case string:
				s.url = strings.TrimSpace(item)
				if s.url == "" { // an empty input of a web form
					continue
				}
			case json.RawMessage:
				if err := s.readObject(item); err != nil {
					return err
				}
			}
			if err := q.checkSource(s); err != nil {
				return err
			}
			q.sources = append(q.sources, s)
		}
	}
	return q.rules.checkCount(len(q.sources) + len(q.files))
}

// readObject reads {"base64": …, "filename": …} or {"url": …, "filename": …}.
// mimetype is optional in both.
func (s *source) readObject(object json.RawMessage) error {
	o, err := readJSON(object)
	if err != nil {
		return badRequest("the field %s: %w", s.at, err)
	}
	var data string
	for _, p := range []struct {
		name string
		to   *string
	}{{"base64", &data}, {"url", &s.url}, {"filename", &s.name}, {"mimetype", &s.contentType}} {
		if *p.to, err = o[p.name].text(s.at + "." + p.name); err != nil {
			return err
		}
	}
	if !o["base64"].absent() {
		s.base64, s.url = &data, ""
	}
	return nil
}

// checkSource makes the checks that cost nothing.
func (q *request) checkSource(s source) error {
	switch {
	case s.base64 != nil:
		return nil
	case s.url == "":
		return badRequest("the field %s must hold base64 or url", s.at)
	case !hasPrefixFold(s.url, "http://") && !hasPrefixFold(s.url, "https://"):
		return badRequest("the field %s must be an address that begins with http:// or https://, or in JSON an object with base64", s.at)
	case !q.rules.remote:
		return badRequest("the field %s is an address, and fetching attachments is turned off here; send the file itself", s.at)
	}
	return nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func (r *rules) checkCount(n int) error {
	switch {
	case n <= r.maxCount:
		return nil
	case r.maxCount == 0:
		return badRequest("attachments are turned off here")
	}
	return badRequest("there are too many attachments; at most %d are allowed", r.maxCount)
}

// attachmentError is the refusal for a file that the spool did not take.
func (r *rules) attachmentError(at string, err error, remote bool) error {
	switch {
	case errors.Is(err, notifier.ErrTooManyAttachments):
		return r.checkCount(r.maxCount + 1)
	case errors.Is(err, notifier.ErrAttachmentTooLarge):
		status := http.StatusRequestEntityTooLarge
		if remote {
			status = http.StatusBadRequest // it is no part of the request
		}
		return refuse(status, "the attachment %s is larger than %s", at, size(r.maxSize))
	}
	return badRequest("the attachment %s: %w", at, err)
}

// maxFetches is how many attachments of one request are fetched at a time.
const maxFetches = 4

// attach decodes and fetches the attachments: first those that fields name, in
// their order, then the files of a multipart form.
func (q *request) attach(ctx context.Context, pool *egress.Pool) ([]*notifier.Attachment, error) {
	if len(q.sources) == 0 {
		return q.files, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, q.rules.timeout, fmt.Errorf("not fetched within %s", q.rules.timeout))
	defer stop()
	out := make([]*notifier.Attachment, len(q.sources), len(q.sources)+len(q.files))
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
		room  = make(chan struct{}, maxFetches)
	)
	for i, s := range q.sources {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			var err error
			if out[i], err = q.load(ctx, pool, s); err != nil {
				once.Do(func() { first = err })
				stop() // the others are of no use any more
			}
		})
	}
	wg.Wait()
	if first != nil {
		return nil, first
	}
	return append(out, q.files...), nil
}

// load brings one attachment to the spool.
func (q *request) load(ctx context.Context, pool *egress.Pool, s source) (*notifier.Attachment, error) {
	if s.base64 != nil {
		return q.rules.add(q.spool, s.at, s.name, s.contentType, decodeBase64(*s.base64))
	}
	a, err := q.spool.Fetch(ctx, pool, q.rules.egress, s.url, s.name)
	if err == nil {
		return a, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, q.rules.attachmentError(s.at, err, true)
}

// add reads a file that is part of the request into the spool. An error of
// the spool's own, such as a full disk, is not the client's and no refusal.
func (r *rules) add(spool *notifier.Spool, at, name, contentType string, file io.Reader) (*notifier.Attachment, error) {
	watched := &watchedReader{r: file}
	a, err := spool.Add(name, contentType, watched)
	var bad base64.CorruptInputError
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, notifier.ErrTooManyAttachments) || errors.Is(err, notifier.ErrAttachmentTooLarge):
		return nil, r.attachmentError(at, err, false)
	case errors.As(err, &bad):
		return nil, badRequest("the field %s.base64 is not base64", at)
	case watched.err != nil:
		return nil, readError(watched.err)
	}
	return nil, fmt.Errorf("keeping the attachment %s: %w", at, err)
}

// watchedReader remembers with which error it ended.
type watchedReader struct {
	r   io.Reader
	err error
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// decodeBase64 reads base64 of either alphabet, with or without padding (RFC
// 4648, sections 4 and 5), with line breaks where there are some.
func decodeBase64(text string) io.Reader {
	text = strings.TrimRight(text, "= \t\r\n")
	return base64.NewDecoder(base64.RawStdEncoding, &plainReader{text})
}

// plainReader turns the URL-safe alphabet into the standard one and leaves
// out white space.
type plainReader struct{ text string }

func (r *plainReader) Read(p []byte) (n int, err error) {
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
