package source

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// jsonPayload returns the JSON payload of a request: the body, or a field of a
// form.
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

// list returns the elements of an array that are objects, up to max of them.
func list(v any, max int) (out []map[string]any) {
	all, _ := v.([]any)
	for _, item := range all {
		if m, ok := item.(map[string]any); ok && len(out) < max {
			out = append(out, m)
		}
	}
	return out
}

// lines collects the parts of a body. Its methods ignore empty text.
type lines struct{ parts []string }

// maxBody bounds the text that an API makes of a payload, in bytes.
const maxBody = 64 << 10

func (l *lines) add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		l.parts = append(l.parts, s)
	}
}

// link adds a Markdown link, or what there is of it.
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

// check returns an error for a message without content.
func (m *Message) check(program string, r *Request) (*Message, error) {
	if m.Body == "" {
		m.Title, m.Body = "", m.Title
	}
	if m.Body == "" && m.File == "" && len(m.Attach) == 0 && r.Files == 0 {
		return nil, errorf(http.StatusBadRequest, "the message for %s has no text", program)
	}
	return m, nil
}

func jsonReply(status int, v any) Reply {
	body, err := json.Marshal(v)
	if err != nil {
		return Reply{Status: http.StatusInternalServerError}
	}
	return Reply{Status: status, ContentType: "application/json", Body: append(body, '\n')}
}

// numericID returns a number for clients that expect one as the ID of a message.
func numericID(t time.Time) int64 { return t.UnixMilli() }
