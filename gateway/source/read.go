package source

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/charset"
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
	if form == nil && media == "application/x-www-form-urlencoded" && !payload.LooksLikeJSON(r.Text()) {
		var err error
		if form, err = r.parseForm(); err != nil {
			return nil, err
		}
	}
	switch {
	case form != nil && form.Get(s.Format.Field) != "":
		return s.decode([]byte(form.Get(s.Format.Field)))
	case form != nil:
		return FormFields(form), nil
	case len(bytes.TrimSpace(r.Text())) == 0:
		return FormFields(r.Query), nil
	}
	return s.decode(r.Text())
}

// decode decodes a JSON payload. A payload that is not JSON becomes the field
// Format.Text of an object, if the format has such a field.
func (s *Source) decode(text []byte) (any, error) {
	data, err := payload.Decode(text)
	if err != nil && s.Format.Text != "" {
		return map[string]any{s.Format.Text: string(text)}, nil
	}
	if err != nil {
		return nil, Errorf(http.StatusBadRequest, "the payload of %s must be JSON: %w", s.Format.Program, err)
	}
	return data, nil
}

// parseForm parses the body as an encoded form.
func (r *Request) parseForm() (url.Values, error) {
	pairs, doubt, ok := charset.ReadForm(r.Body, r.declared(), maxFields)
	if !ok {
		return nil, Errorf(http.StatusBadRequest, "the form has more than %d fields", maxFields)
	}
	r.doubt = r.doubt.Or(doubt)
	return charset.Values(pairs), nil
}

// FormFields returns the fields of a form or query string as an object. It leaves out the
// parameters of the gateway: token, tag and tags.
func FormFields(form url.Values) map[string]any {
	out := map[string]any{}
	for name, values := range form {
		if !slices.Contains([]string{"token", "tag", "tags", charset.CharsetField}, name) && len(values) > 0 {
			out[name] = values[len(values)-1]
		}
	}
	return out
}
