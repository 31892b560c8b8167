package source

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// jsonPayload returns the JSON payload of a request to an API: the body, or the last
// non-empty field of a form among names. If a form has none of these fields, the
// payload is an object with all fields of the form.
func (r *Request) jsonPayload(program string, names ...string) (any, error) {
	form := r.Form
	if form == nil && !looksLikeJSON(r.Body) {
		var err error
		if form, err = parseForm(string(r.Body)); err != nil {
			return nil, err
		}
	}
	text := r.Body
	for _, name := range names {
		if value := form.Get(name); value != "" {
			text = []byte(value)
		}
	}
	if form != nil && (r.Form != nil || len(form) > 0) && string(text) == string(r.Body) {
		return fields(form), nil
	}
	data, err := decodeJSON(text)
	if err != nil {
		return nil, errorf(http.StatusBadRequest, "the payload of %s must be JSON: %w", program, err)
	}
	return data, nil
}

// list returns the first max objects of an array.
//
//go:noinline // keeps its many callers small
func list(v any, max int) (out []map[string]any) {
	all, _ := v.([]any)
	for _, item := range all {
		if m, ok := item.(map[string]any); ok && len(out) < max {
			out = append(out, m)
		}
	}
	return out
}

// lines collects the lines of a body. Its methods ignore empty text.
type lines struct{ parts []string }

// maxBody is the maximum length of the body that an API makes from a payload, in
// bytes.
const maxBody = 64 << 10

//go:noinline // keeps its many callers small
func (l *lines) add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		l.parts = append(l.parts, s)
	}
}

// link adds a Markdown link. If the text or a valid address is missing, it adds the
// other one.
func (l *lines) link(text, address string) {
	switch {
	case !isAddress(address):
		l.add(text)
	case strings.TrimSpace(text) == "":
		l.add(address)
	default:
		l.add("[" + strings.NewReplacer("[", "(", "]", ")").Replace(text) + "](" + address + ")")
	}
}

func (l *lines) String() string {
	s := strings.Join(l.parts, "\n")
	if len(s) > maxBody {
		s = strings.ToValidUTF8(s[:maxBody], "") + "…"
	}
	return s
}

// maxFacts is the maximum number of fields, buttons or cells to read of one part of a
// message.
const maxFacts = 25

// fact returns a field of an attachment or embed as a line.
func fact(name, value string) string {
	if name == "" {
		return value
	}
	return name + ": " + value
}

// image adds the address of an image.
func (m *Message) image(v any) {
	if s := text(v); isAddress(s) && len(m.Images) < maxImages {
		m.Images = append(m.Images, s)
	}
}

// raise sets the type to t if t is more serious.
func (m *Message) raise(t notifier.Type) {
	if severity(t) > severity(notifier.Type(m.Type)) {
		m.Type = string(t)
	}
}

// severity returns the place of a type in the order of raise, or 0 if it has none.
func severity(t notifier.Type) int {
	switch t {
	case notifier.Info:
		return 1
	case notifier.Success:
		return 2
	case notifier.Warning:
		return 3
	case notifier.Failure:
		return 4
	}
	return 0
}

// check returns m, or an error if m has no content. A title without a body becomes
// the body.
func (m *Message) check(program string, r *Request) (*Message, error) {
	if m.Body == "" {
		m.Title, m.Body = "", m.Title
	}
	if m.Body == "" && m.File == "" && len(m.Attach) == 0 && r.Files == 0 {
		return nil, errorf(http.StatusBadRequest, "the message for %s has no text", program)
	}
	return m, nil
}

// jsonReply returns a reply with v as JSON.
func jsonReply(status int, v any) Reply {
	body, err := json.Marshal(v)
	if err != nil {
		return Reply{Status: http.StatusInternalServerError}
	}
	return Reply{Status: status, ContentType: "application/json", Body: append(body, '\n')}
}

// numericID returns the ID of a message for clients that expect a number.
func numericID(t time.Time) int64 { return t.UnixMilli() }
