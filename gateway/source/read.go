package source

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// maxFields is the maximum number of fields of a form.
const maxFields = 1000

// payload returns the data for the templates.
func (s *Source) payload(r *Request) (any, error) {
	if s.Format.Payload != nil {
		return s.Format.Payload(r)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := r.Form
	if form == nil && media == "application/x-www-form-urlencoded" && !payload.LooksLikeJSON(r.Body) {
		var err error
		if form, err = parseForm(string(r.Body)); err != nil {
			return nil, err
		}
	}
	switch {
	case form != nil && form.Get(s.Format.Field) != "":
		return s.decode([]byte(form.Get(s.Format.Field)))
	case form != nil:
		return FormFields(form), nil
	case len(bytes.TrimSpace(r.Body)) == 0:
		return FormFields(r.Query), nil
	}
	return s.decode(r.Body)
}

// decode decodes a JSON payload. A payload that is not JSON becomes the field
// Format.Text of an object, if the format has such a field.
func (s *Source) decode(text []byte) (any, error) {
	data, err := payload.Decode(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))
	if err != nil && s.Format.Text != "" {
		return map[string]any{s.Format.Text: strings.ToValidUTF8(string(text), "\uFFFD")}, nil
	}
	if err != nil {
		return nil, Errorf(http.StatusBadRequest, "the payload of %s must be JSON: %w", s.Format.Program, err)
	}
	return data, nil
}

// parseForm parses an encoded form.
func parseForm(s string) (url.Values, error) {
	if strings.Count(s, "&") >= maxFields {
		return nil, Errorf(http.StatusBadRequest, "the form has more than %d fields", maxFields)
	}
	return percent.ParseForm(s), nil
}

// FormFields returns the fields of a form or query string as an object. It leaves out the
// parameters of the gateway: token, tag and tags.
func FormFields(form url.Values) map[string]any {
	out := map[string]any{}
	for name, values := range form {
		if !slices.Contains([]string{"token", "tag", "tags"}, name) && len(values) > 0 {
			out[name] = strings.ToValidUTF8(values[len(values)-1], "\uFFFD")
		}
	}
	return out
}
