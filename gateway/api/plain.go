package api

import (
	"bytes"
	"encoding/json"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// isPlain reports whether an urlencoded body is a plain text, as curl -d "backup
// done" sends it: it has no equals sign and is not JSON.
func isPlain(text []byte) bool {
	return len(bytes.TrimSpace(text)) > 0 && bytes.IndexByte(text, '=') < 0 && (!beginsLikeJSON(text) || !json.Valid(text))
}

// plainHeaders are the headers that stand for fields of a message whose body is its text. A
// later one of a field precedes an earlier one.
//
// Apprise API has had X-Apprise-Title and its like since 2.0.2, as its release notes say.
// The names follow those of its other headers; no document that lists them was found.
var plainHeaders = []struct{ header, name string }{
	{"Subject", fieldTitle},
	{"Title", fieldTitle},
	{"X-Apprise-Title", fieldTitle},
	{"Priority", fieldType},
	{"X-Apprise-Type", fieldType},
	{"Tags", "tag"},
	{"X-Apprise-Tag", "tag"},
	{"X-Apprise-Format", fieldFormat},
	{"Incident", fieldIncident},
}

// readPlain sets the fields of a request whose body is the message itself.
// The headers Title, Tags and Priority stand for the fields title, tag and type,
// under the names that ntfy has made known, and Incident for incident. Subject, which
// Kopia sends, is another name of Title. The format of the body, if that is not plain text,
// precedes that of a header or of the query string.
func (x *requestReader) readPlain(text *bytes.Buffer, format markup.Format) {
	fields := map[string]field{fieldBody: {texts: []string{text.String()}}}
	for _, f := range plainHeaders {
		value := x.q.texts.header(x.r.Header.Get(f.header))
		if value == "" {
			continue
		}
		if f.name == fieldType {
			if t, ok := typeword.TypeOfPriority(value); ok && !typeword.IsAcknowledgement(value) {
				value = string(t)
			}
		}
		fields[f.name] = field{texts: []string{value}, mapped: true}
	}
	if format != markup.Text {
		fields[fieldFormat] = field{texts: []string{string(format)}}
	}
	x.q.content.fields = fields
}
