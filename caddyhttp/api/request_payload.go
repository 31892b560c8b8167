package api

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ReadPayload reads a request whose body is in the format of another program.
// The message is that of [Request.SetContent]. Of the query string, title, type,
// format, tag and tags count, as for [Read].
func ReadPayload(w http.ResponseWriter, r *http.Request, l Limits) (*Request, error) {
	q := newRequest(l)
	if err := q.readPayload(w, r); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func (q *Request) readPayload(w http.ResponseWriter, r *http.Request) error {
	if _, err := q.readQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return errCompressed
	}
	if media, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "multipart/form-data" {
		q.payload.multipart = true
		return q.readMultipart(w, r, params["boundary"])
	}
	b, err := q.readBytes(w, r)
	q.raw = b
	return err
}

// payload is the body of a request in another format.
type payload struct {
	multipart bool
	preferred []string // tags that select only if a destination has them
}

// Payload returns the body of a request that ReadPayload has read, or the fields
// of a multipart form and the number of its files. The body is valid until
// [Request.Attachments] or Close.
func (q *Request) Payload() (body []byte, form url.Values, files int) {
	if q.payload.multipart {
		form = url.Values{}
		for name, f := range q.fields {
			form[name] = slices.Clone(f.texts)
		}
		return nil, form, len(q.files)
	}
	if q.raw == nil {
		return nil, nil, 0
	}
	return q.raw.Bytes(), nil, 0
}

// Content is a message that has been read from a payload.
type Content struct {
	Title, Body, Type, Format string

	// Attach are addresses of files. Images are addresses of files without which
	// the message is sent, too, if they cannot be fetched.
	Attach, Images []string

	// File means that the body of the request is an attachment with this name.
	File, ContentType string

	// DropFiles removes the files of a multipart form.
	DropFiles bool

	// Preferred are tags that decide where the message goes if a destination has one
	// of them and the address names no tag.
	Preferred []string

	// Warnings are for the report.
	Warnings []string
}

// SetContent sets the message of a request that ReadPayload has read.
func (q *Request) SetContent(c Content) error {
	fields := map[string]field{}
	for name, text := range map[string]string{fieldTitle: c.Title, fieldBody: c.Body, fieldType: c.Type, fieldFormat: c.Format} {
		if text != "" {
			fields[name] = field{texts: []string{strings.Clone(strings.ToValidUTF8(text, "\uFFFD"))}}
		}
	}
	if len(c.Attach) > 0 {
		fields["attach"] = field{texts: c.Attach}
	}
	if c.DropFiles {
		q.files = nil
	}
	if c.File != "" {
		body, _, _ := q.Payload()
		if err := q.limits.checkCount(1); err != nil {
			return err
		}
		a, err := q.addFile(printable(c.File), c.File, c.ContentType, strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		q.files = append(q.files, a)
	}
	q.fields, q.payload.preferred, q.warnings = fields, c.Preferred, c.Warnings
	if q.limits.RemoteFiles {
		for _, address := range c.Images {
			if len(q.images)+len(c.Attach)+len(q.files) < q.limits.MaxFiles {
				q.images = append(q.images, fileRef{field: "image", url: address, optional: true})
			}
		}
	}
	return nil
}

// preferredTargets returns the targets that have one of the preferred tags, with
// those that get every message, or nil if none has.
func (q *Request) preferredTargets(choose func(notifier.TagExpr) ([]notifier.Target, error)) []notifier.Target {
	if len(q.payload.preferred) == 0 {
		return nil
	}
	e, err := notifier.ParseTags(strings.Join(q.payload.preferred, ","))
	if err != nil {
		return nil
	}
	targets, err := choose(e)
	if err != nil || !slices.ContainsFunc(targets, q.hasPreferred) {
		return nil
	}
	return targets
}

func (q *Request) hasPreferred(t notifier.Target) bool {
	return slices.ContainsFunc(t.Tags, func(tag string) bool {
		_, tag = notifier.SplitTag(tag)
		return slices.ContainsFunc(q.payload.preferred, func(preferred string) bool { return strings.EqualFold(tag, preferred) })
	})
}
