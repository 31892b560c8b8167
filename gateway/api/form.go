package api

import (
	"bytes"

	"github.com/caddy-notify/caddy-notify/internal/charset"
)

// readForm reads an urlencoded form. decoded reports whether it has been decoded as a whole.
func (x *requestReader) readForm(text *bytes.Buffer, decoded bool) error {
	declared := x.declared()
	if decoded {
		declared = ""
	}
	pairs, doubt, ok := charset.ReadForm(text.Bytes(), declared, maxFields)
	if !ok {
		return badRequest("the form: more than %d fields", maxFields)
	}
	x.q.texts.note(doubt)
	x.q.content.fields = make(map[string]field, len(pairs))
	for _, p := range pairs {
		x.q.content.fields[p.Name] = field{texts: append(x.q.content.fields[p.Name].texts, p.Value)}
	}
	delete(x.q.content.fields, charset.CharsetField)
	return nil
}
