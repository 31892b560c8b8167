package api

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ReadPayload reads a request whose body is in the format of another program. [Request.SetContent]
// then sets the message. The query string may set title, type, format, incident, send_at, tag and
// tags, as for [Read].
func ReadPayload(w http.ResponseWriter, r *http.Request, l message.Limits) (*Request, error) {
	q := newRequest(l)
	if err := (&requestReader{q, w, r}).readPayload(); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func (x *requestReader) readPayload() error {
	if _, err := x.readQuery(x.r.URL.RawQuery); err != nil {
		return err
	}
	if x.r.Body == nil || x.r.Body == http.NoBody || x.r.ContentLength == 0 {
		return nil
	}
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return errCompressed
	}
	if media, params, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); media == "multipart/form-data" {
		x.q.payload.multipart = true
		return x.readMultipart(params["boundary"])
	}
	b, err := x.q.texts.readBytes(x.w, x.r)
	x.q.content.raw = b
	return err
}

// payload is the body of a request in another format.
type payload struct {
	multipart bool
	preferred []string // tags that select only if a destination has them
	linkFiles bool     // the text has the address of a file that cannot be fetched

	acknowledged bool     // see Content.Acknowledged
	alerts       []string // see Content.Alerts
}

// Payload returns the body of a request from ReadPayload, or the fields of a multipart form and the
// number of its files. The body is valid until [Request.Attachments] or Close.
func (q *Request) Payload() (body []byte, form url.Values, files int) {
	if q.payload.multipart {
		return nil, q.content.form(), len(q.files.attached)
	}
	if q.content.raw == nil {
		return nil, nil, 0
	}
	return q.content.raw.Bytes(), nil, 0
}

// Raw returns the body of a JSON request from [Read], or the fields of a form. The body is valid
// until [Request.Attachments] or Close.
func (q *Request) Raw() (body []byte, form url.Values) {
	if q.content.raw != nil {
		return q.content.raw.Bytes(), nil
	}
	return nil, q.content.form()
}

// Content is a message that has been read from a payload.
type Content struct {
	Title, Body, Type, Format string

	// Incident is what the message is about. A name that the API reserves is replaced by its hash,
	// with a warning, so that the message is not lost.
	Incident string

	// Alerts are the identifiers of the alerts that are open in the incident.
	Alerts []string

	// Acknowledged means that somebody takes care of the incident.
	Acknowledged bool

	// Foreign and Dialect are set in the [notifier.Message].
	Foreign bool
	Dialect markup.Dialect

	// Attach are files to fetch. If one cannot be fetched, its address is added to the text (see
	// [Request.LinkFiles]). Images are addresses of files that are left out if they cannot be
	// fetched.
	Attach []RemoteFile
	Images []string

	// File makes the body of the request an attachment with this name, or gives the first file of a
	// multipart form this name.
	File, ContentType string

	// DropFiles removes the files of a multipart form.
	DropFiles bool

	// Preferred are tags that select destinations if the address names no tag and at least one
	// destination has one of them. OwnTags adds the tags of the address to them.
	Preferred []string
	OwnTags   bool

	// SendAt is the field send_at: when the message is sent; "" for now.
	SendAt string

	// Warnings are shown in the report.
	Warnings []string
}

// RemoteFile is a file at an address.
type RemoteFile struct {
	URL  string `json:"url"`
	Name string `json:"filename"` // "" for the name in the address
}

// OriginCheck protects against cross-site request forgery, in which a page of another site sends
// messages through a visitor's browser, with the visitor's password or network. It relies on
// headers that only browsers set: Sec-Fetch-Site or, in older ones, Origin. The zero value checks
// nothing.
func (q *Request) SetContent(c Content) error {
	fields := map[string]field{}
	if _, _, err := notifier.IncidentName(c.Incident); err != nil {
		c.Incident = notifier.HashIncidentName(c.Incident)
		c.Warnings = append(slices.Clip(c.Warnings), "The incident of the payload has a control character, so its SHA-256 hash is used.")
	}
	for _, f := range [...]struct{ name, text string }{
		{fieldTitle, c.Title},
		{fieldBody, c.Body},
		{fieldType, c.Type},
		{fieldFormat, c.Format},
		{fieldIncident, c.Incident},
		{fieldSendAt, c.SendAt},
	} {
		if f.text != "" {
			fields[f.name] = field{texts: []string{strings.Clone(strings.ToValidUTF8(f.text, "\uFFFD"))}}
		}
	}
	if len(c.Attach) > 0 {
		files, err := json.Marshal(c.Attach)
		if err != nil {
			return err
		}
		fields["attach"], q.payload.linkFiles = field{json: files}, true
	}
	if c.DropFiles {
		q.files.attached = nil
	}
	switch {
	case c.File == "":
	case q.payload.multipart:
		if len(q.files.attached) > 0 {
			q.files.attached[0].Rename(c.File)
		}
	default:
		body, _, _ := q.Payload()
		if err := checkCount(&q.limits, 1); err != nil {
			return err
		}
		a, err := q.files.read(printable(c.File), c.File, c.ContentType, strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		q.files.attached = append(q.files.attached, a)
	}
	q.content.fields, q.content.foreign, q.content.dialect, q.warnings = fields, c.Foreign, c.Dialect, append(q.warnings, c.Warnings...)
	if doubt := q.texts.doubt; doubt.Any() && !slices.Contains(q.warnings, doubt.String()) {
		q.warnings = append(slices.Clip(q.warnings), doubt.String())
	}
	if c.OwnTags {
		for _, name := range tagFields {
			delete(q.content.query, name)
		}
	}
	q.payload.preferred, q.payload.acknowledged, q.payload.alerts = c.Preferred, c.Acknowledged, c.Alerts
	if q.limits.RemoteFiles {
		for _, address := range c.Images {
			if len(q.files.images)+len(c.Attach)+len(q.files.attached) < q.limits.MaxFiles {
				q.files.images = append(q.files.images, fileRef{field: "image", url: address, optional: true})
			}
		}
	}
	return nil
}
