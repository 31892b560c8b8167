package api

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Webhooks of Apprise (json://, form:// and xml://) name the fields of a message differently from
// its API. This gateway sends them too, and reads them, so that one gateway can send to another.

// hookNames are the names of a webhook's fields. A request that has all of them is a webhook.
type hookNames struct{ version, title, message, typ string }

// hooks are the names in json:// and form://, and in xml://.
var hooks = []hookNames{
	{"version", fieldTitle, "message", fieldType},
	{"Version", "Subject", "Message", "MessageType"},
}

// fieldAcknowledge is the field of a webhook with the address at which the incident can be
// acknowledged. An apprise:// URL has the address in the text as well.
const fieldAcknowledge = "acknowledge_url"

// readHook renames the fields of a webhook to the fields of a message. A webhook whose URL sets a
// body of its own keeps that, and the body that webhooks send by default is dropped.
func (c *content) readHook() {
	for _, names := range hooks {
		isHook := true
		for _, name := range []string{names.version, names.title, names.message, names.typ} {
			_, exists := c.fields[name]
			isHook = isHook && exists
		}
		if !isHook {
			continue
		}
		if !c.fields[fieldBody].absent() {
			delete(c.fields, names.version)
			delete(c.fields, names.message)
			return
		}
		for from, to := range map[string]string{names.message: fieldBody, names.title: fieldTitle, names.typ: fieldType} {
			if value := c.fields[from]; from != to {
				delete(c.fields, from)
				c.fields[to] = value
			}
		}
		delete(c.fields, names.version)
		c.acknowledge, _ = c.fields[fieldAcknowledge].text(fieldAcknowledge) // another type has no address
		return
	}
}

// acknowledgeText adds a line to the text of m with the address at which the incident of a webhook
// can be acknowledged.
func (c *content) acknowledgeText(m *notifier.Message) {
	if address := c.acknowledge; (hasPrefixFold(address, "https://") || hasPrefixFold(address, "http://")) &&
		!strings.ContainsAny(address, " \t\r\n") && !strings.Contains(m.Body, address) {
		m.Body = appendLine(m.Body, m.Format, "\n\n", "Acknowledge: "+address)
	}
}

// appendLine returns a text in format with line at its end, after separator.
func appendLine(text string, format markup.Format, separator, line string) string {
	if format == markup.HTML {
		return text + "<p>" + html.EscapeString(line) + "</p>"
	}
	if text = strings.TrimRight(text, "\n"); text == "" {
		return line
	}
	return text + separator + line
}

// readXMLBody reads what an xml:// URL sends.
func (x *requestReader) readXMLBody() error {
	b, err := x.q.texts.readBytes(x.w, x.r)
	if err != nil {
		return err
	}
	declared := x.declared()
	if declared == "" {
		declared = charset.OfXML(b.Bytes())
	}
	if b, err = x.q.texts.decode(b, declared); err != nil {
		return err
	}
	defer putBuffer(b)
	if b.Len() == 0 {
		return nil
	}
	more := xmlAttributeSize * int64(bytes.Count(b.Bytes(), []byte("=")))
	if !x.q.limits.Memory.Take(more) {
		return errNoMemory(x.q.limits.Memory.Max())
	}
	if x.q.content.fields, err = readXML(b.Bytes()); err != nil {
		return err
	}
	for header, name := range map[string]string{"Incident": fieldIncident, "Acknowledge-Url": fieldAcknowledge} {
		if value := x.q.texts.header(x.r.Header.Get(header)); value != "" {
			x.q.content.fields[name] = field{texts: []string{value}}
		}
	}
	return nil
}

// maxXMLDepth is the maximum depth of elements. A message has five levels.
const maxXMLDepth = 16

// xmlAttributeSize is the memory that an attribute takes in addition to its text, in
// bytes.
const xmlAttributeSize = 64

// xmlFile is an attachment of a message.
type xmlFile struct {
	Filename string `json:"filename"`
	MIMEType string `json:"mimetype"`
	Base64   string `json:"base64"`
}

// readXML returns the fields of the element Notification in its envelope. It reads single tokens,
// because decoding whole elements takes many times the memory of a hostile text.
func readXML(text []byte) (map[string]field, error) {
	var (
		d      = xml.NewDecoder(bytes.NewReader(text)) //nolint:gosec // only tokens are read, and depth and memory are bounded here
		fields map[string]field                        // nil outside of Notification
		files  []xmlFile
		names  []string // names of the open elements below Notification
		value  strings.Builder
		depth  int
	)
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // text is UTF-8
	for n := 0; ; {
		token, err := d.RawToken()
		switch {
		case err == io.EOF && fields == nil && depth == 0:
			return nil, errMediaType // of another program
		case err == io.EOF:
			return nil, badRequest("the XML is invalid: it ends too early")
		case err != nil:
			return nil, badRequest("the XML is invalid: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxXMLDepth {
				return nil, badRequest("the XML has more than %d levels of elements", maxXMLDepth)
			}
			if fields == nil {
				if t.Name.Local == "Notification" {
					fields = map[string]field{}
				}
				continue
			}
			if n++; n > maxFields {
				return nil, badRequest("the XML has more than %d fields", maxFields)
			}
			value.Reset()
			if names = append(names, t.Name.Local); strings.Join(names, "/") == "Attachments/Attachment" {
				var f xmlFile
				for _, a := range t.Attr {
					switch a.Name.Local {
					case "filename":
						f.Filename = a.Value
					case "mimetype":
						f.MIMEType = a.Value
					}
				}
				files = append(files, f)
			}
		case xml.CharData:
			if len(names) > 0 {
				value.Write(t)
			}
		case xml.EndElement:
			depth--
			switch {
			case fields == nil:
			case len(names) == 0: // of Notification
				return addXMLFiles(fields, files)
			case strings.Join(names, "/") == "Attachments/Attachment":
				files[len(files)-1].Base64 = value.String()
			case len(names) == 1 && names[0] != "Attachments":
				fields[names[0]] = field{texts: []string{value.String()}}
			}
			if len(names) > 0 {
				names = names[:len(names)-1]
			}
			value.Reset()
		}
	}
}

// addXMLFiles adds files to the fields of a message.
func addXMLFiles(fields map[string]field, files []xmlFile) (map[string]field, error) {
	if len(files) == 0 {
		return fields, nil
	}
	list, err := json.Marshal(files)
	if err != nil {
		return nil, err
	}
	fields["attachments"] = field{json: list}
	return fields, nil
}

// maxUnread is the maximum number of fields that warnings name.
const maxUnread = 5

// likelyFields are the fields that other names most likely stand for.
var likelyFields = map[string]string{
	"message": fieldBody, "msg": fieldBody, "text": fieldBody, "content": fieldBody, "description": fieldBody,
	"subject": fieldTitle, "headline": fieldTitle, "priority": fieldType, "severity": fieldType, "level": fieldType, "status": fieldType,
}

// fieldName matches the names of fields that a warning shows. A longer name, or one with
// other characters, may be a text without a name.
var fieldName = lazyregexp.New(`^[\pL_][\pL\d_.-]{0,31}$`)

// unread returns the names of unknown fields, in order. A request with mappings has none, because
// its other fields belong to its program.
func (c *content) unread() (names []string) {
	if c.mapped {
		return nil
	}
	for name, f := range c.fields {
		if !isField(name) && name != fieldAcknowledge && !f.empty() && fieldName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// addUnread adds warnings about the fields of c that nobody reads.
func (w *warnings) addUnread(c *content) {
	unread := c.unread()
	for i, name := range unread {
		if i == maxUnread {
			w.add("%d more fields have no effect", len(unread)-maxUnread)
			return
		}
		known := likelyFields[strings.ToLower(name)]
		if known == "" {
			if similar := similar.Names(strings.ToLower(name), fieldNames); len(similar) > 0 {
				known = similar[0]
			}
		}
		if known == "" {
			w.add("The field %s has no effect", name)
		} else {
			w.add("The field %s has no effect; is it the field %s?", name, known)
		}
	}
}
