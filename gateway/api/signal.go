package api

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// A signal is a request whose arrival matters more than its content: a beat, an answer to a
// question, an action on an incident, the receipt of a device. It is not refused for its content if
// its sender may send it: what can be read is kept, and the answer warns about the rest.

// ReadSignal reads the query string and the body of a signal. It keeps the part of the body that
// can be read within the limits. names are the additional fields that a signal may have.
func ReadSignal(w http.ResponseWriter, r *http.Request, l message.Limits, names ...string) *Request {
	q := newRequest(l)
	x := &signalReader{requestReader{q, w, r}, names, nil}
	mappings := x.readSignalQuery()
	x.readBody()
	q.content.mapped = len(mappings) > 0
	x.note(q.content.applyMappings(mappings))
	q.content.readHook()
	if doubt := q.texts.doubt; doubt.Any() {
		q.Warn(doubt.String())
	}
	return q
}

// ReadSignalPayload is [ReadPayload] for a signal.
func ReadSignalPayload(w http.ResponseWriter, r *http.Request, l message.Limits) *Request {
	q := newRequest(l)
	x := &signalReader{requestReader{q, w, r}, nil, nil}
	_ = x.readSignalQuery() // mappings have no effect on a payload
	media, params := x.media()
	switch {
	case !x.hasBody():
	case media == "multipart/form-data":
		raw := x.readParts(params["boundary"])
		if q.payload.multipart = raw == nil; raw != nil {
			q.content.raw = bytes.NewBuffer(raw)
		}
	default:
		q.content.raw = bytes.NewBuffer(x.keep())
	}
	return q
}

// signalReader reads a signal into a Request, and turns errors into warnings.
type signalReader struct {
	requestReader
	names []string
	tail  []byte // the end of the body
}

// note adds a warning about what cannot be read, unless err is nil.
func (x *signalReader) note(err error) {
	if err != nil {
		x.q.Warn("A part of the request is left out: " + err.Error())
	}
}

// maxWarnings bounds the warnings about a signal.
const maxWarnings = 20

// Warn adds a warning for the answer, once.
func (q *Request) Warn(text string) {
	if len(q.warnings) < maxWarnings && !slices.Contains(q.warnings, text) {
		q.warnings = append(q.warnings, text)
	}
}

// readSignalQuery reads the query string, one parameter after the other, and returns the mappings.
func (x *signalReader) readSignalQuery() (mappings []mapping) {
	n := 0
	for pair := range strings.SplitSeq(x.r.URL.RawQuery, "&") {
		if n++; n > maxFields || len(mappings) >= maxMappings {
			x.q.Warn("The query string has too many parameters, so its end is left out")
			break
		}
		more, err := x.readQuery(pair)
		x.note(err)
		mappings = append(mappings, more...)
	}
	return mappings
}

func (x *signalReader) media() (media string, params map[string]string) {
	media, params, _ = mime.ParseMediaType(x.r.Header.Get("Content-Type")) // with a malformed parameter, media is still set
	return media, params
}

// hasBody reports whether there is a body that can be read.
func (x *signalReader) hasBody() bool {
	if x.r.Body == nil || x.r.Body == http.NoBody || x.r.ContentLength == 0 {
		return false
	}
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		x.note(errCompressed)
		return false
	}
	return true
}

// readBody reads the body in the format that Content-Type names or, if it is not in that format,
// as a text.
func (x *signalReader) readBody() {
	if !x.hasBody() {
		return
	}
	media, params := x.media()
	isForm, isXML := media == "multipart/form-data", media == "application/xml" || media == "text/xml"
	declared := x.declared()
	var kept []byte
	if isForm {
		kept = x.readParts(params["boundary"])
	} else {
		kept = x.keep()
	}
	switch {
	case len(kept) == 0:
		return
	case declared == "" && media == "text/html":
		declared = charset.OfHTML(kept)
	case declared == "" && isXML:
		declared = charset.OfXML(kept)
	}
	if !charset.IsText(kept, declared) && !charset.IsText(kept, "") {
		x.q.Warn("The body is left out, because it is not a text; send a file as a part of a form (multipart/form-data)")
		return
	}
	text := x.decode(kept, declared)
	switch {
	case isJSON(media):
		x.readJSON(text)
	case isXML:
		if err := x.readXML(text); err != nil {
			x.note(err)
			x.keepText(text, markup.Text)
		}
	case media == "text/markdown":
		x.keepText(text, markup.Markdown)
	case media == "text/html":
		x.keepText(text, markup.HTML)
	case isForm, media == "text/plain" && len(x.names) == 0:
		x.keepText(text, markup.Text)
	case beginsLikeJSON(text) && x.hasFields(text):
		x.readJSON(text)
	case media == "application/x-www-form-urlencoded":
		x.readForm(kept, text, declared)
	default:
		if media != "text/plain" && x.r.Header.Get("Content-Type") != "" {
			x.q.Warn("The Content-Type is unknown, so the body is read as a text")
		}
		x.keepText(text, markup.Text)
	}
}

// decode returns bytes as text.
func (x *signalReader) decode(b []byte, declared string) []byte {
	text, doubt := charset.Decode(b, declared)
	x.q.texts.note(doubt)
	return text
}

// readXML reads what an xml:// URL sends.
func (x *signalReader) readXML(text []byte) (err error) {
	if !x.q.limits.Memory.Take(xmlAttributeSize * int64(bytes.Count(text, []byte("=")))) {
		return errNoMemory(x.q.limits.Memory.Max())
	}
	x.q.content.fields, err = readXML(text)
	return err
}

// keep returns the first MaxBody bytes of the body. It reads the rest as well, up to the limit of a
// request, because a client that is still sending does not see the answer.
func (x *signalReader) keep() []byte {
	body := &endingReader{r: x.r.Body}
	b, err := x.q.texts.readBuffer(io.LimitReader(body, x.q.limits.MaxBody), x.q.limits.MaxBody)
	if err != nil { // out of memory
		x.note(err)
		return nil
	}
	x.keepTail(b.Bytes())
	x.leaveOut(x.drop(body), "body")
	if body.err != nil {
		x.q.Warn("The body ends too early, so only what has arrived of it counts")
	}
	return b.Bytes()
}

// leaveOut notes that n bytes of something are left out.
func (x *signalReader) leaveOut(n int64, what string) {
	if n > 0 {
		x.q.leftOut = fmt.Sprintf("%d bytes of the %s are left out, because it is larger than %s", n, what, formatSize(x.q.limits.MaxBody))
		x.q.Warn(x.q.leftOut)
	}
}

// maxTail bounds how much of the end of a body is looked at for the type.
const maxTail = 4 << 10

// keepTail keeps the end of b as the tail.
func (x *signalReader) keepTail(b []byte) { x.tail = slices.Clone(b[max(0, len(b)-maxTail):]) }

// drop reads the rest of a body, keeps its end as the tail and returns its length.
func (x *signalReader) drop(body io.Reader) (n int64) {
	buf := make([]byte, 2*maxTail)
	for n < maxMultipart(&x.q.limits) {
		got, err := body.Read(buf)
		n += int64(got)
		x.tail = append(x.tail, buf[:got]...)
		x.tail = x.tail[max(0, len(x.tail)-maxTail):]
		if err != nil {
			break
		}
	}
	return n
}

// endingReader reads r and returns io.EOF in place of any error.
type endingReader struct {
	r   io.Reader
	err error
}

func (e *endingReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && err != io.EOF {
		e.err, err = err, io.EOF
	}
	return n, err
}

// hasFields reports whether text is a JSON object with a field that is known.
func (x *signalReader) hasFields(text []byte) bool {
	fields, err := readJSON(text)
	if err != nil {
		return false
	}
	for name := range fields {
		if x.knows(name) {
			return true
		}
	}
	return false
}

func (x *signalReader) knows(name string) bool {
	return isField(name) || slices.Contains(x.names, name)
}

// typeAtEnd matches a type among the last fields of a JSON object. A quote within a text is
// preceded by a backslash and does not match.
var typeAtEnd = lazyregexp.New(`"type"\s*:\s*"([^"\\]*)"`)

// readJSON reads the fields of a JSON object up to where it is damaged.
func (x *signalReader) readJSON(text []byte) {
	x.q.content.raw, x.q.content.fields = bytes.NewBuffer(text), x.members(text)
}

// members returns the fields of a JSON object up to where it is damaged. A damaged object without a
// body becomes the text of a message.
func (x *signalReader) members(text []byte) map[string]field {
	fields := map[string]field{}
	_, err := eachMember(text, func(name string, value json.RawMessage) error {
		if len(fields) == maxFields {
			return fmt.Errorf("it has more than %d fields", maxFields)
		}
		fields[name] = field{json: value}
		return nil
	})
	if err == nil {
		return fields
	}
	if x.q.leftOut == "" {
		x.note(badRequest("the JSON is invalid: %w", err))
	}
	if m := typeAtEnd.FindStringSubmatch(string(x.tail)); m != nil && fields[fieldType].absent() {
		fields[fieldType] = field{texts: []string{m[1]}}
	}
	if fields[fieldBody].absent() && len(x.names) == 0 {
		fields[fieldBody] = field{texts: []string{string(text)}}
	}
	return fields
}

// readForm reads an encoded form, which has been decoded as text. A form without a known field
// is a text: curl --data declares every text as a form.
func (x *signalReader) readForm(form, text []byte, declared string) {
	if isPlain(text) {
		x.keepText(text, markup.Text)
		return
	}
	if i := bytes.LastIndex(x.tail, []byte("&type=")); i >= 0 && x.q.leftOut != "" {
		form = append(slices.Clip(form), x.tail[i:]...)
	}
	pairs, doubt, ok := charset.ReadForm(form, declared, maxFields)
	if x.q.texts.note(doubt); !ok {
		x.note(badRequest("the form has more than %d fields", maxFields))
	}
	fields, known := map[string]field{}, len(x.names) > 0
	for _, p := range pairs {
		fields[p.Name] = field{texts: append(fields[p.Name].texts, p.Value)}
		known = known || x.knows(p.Name)
	}
	if x.q.content.fields = fields; !known {
		x.keepText(text, markup.Text)
	}
}

// keepText makes a text the body of the message.
func (x *signalReader) keepText(text []byte, format markup.Format) {
	x.readPlain(bytes.NewBuffer(text), format)
}

// readParts reads a multipart form up to where it is damaged, without parts that are too large. If
// there is no part at all, it returns the form as it is.
func (x *signalReader) readParts(boundary string) []byte {
	x.q.content.fields = map[string]field{}
	start := &startKeeper{x: x}
	body := bufio.NewReader(io.TeeReader(io.LimitReader(&endingReader{r: x.r.Body}, maxMultipart(&x.q.limits)), start))
	if boundary = x.boundary(body, boundary); boundary == "" {
		_, _ = io.Copy(io.Discard, body) // Discard returns no error
		return x.raw(start)
	}
	parts := multipart.NewReader(body, boundary)
	f := &multipartReader{request: x.q, remaining: x.q.limits.MaxBody}
	for range maxParts {
		part, err := parts.NextPart()
		if err != nil && err != io.EOF {
			x.note(multipartError(err))
			if !start.off {
				return x.raw(start)
			}
			break
		}
		if start.off, start.kept = true, nil; err == io.EOF {
			break
		}
		x.readPart(f, part)
	}
	for name, value := range f.payload {
		if !value.absent() {
			x.q.content.fields[name] = value
		}
	}
	x.drop(x.r.Body)
	return nil
}

// raw returns the part of a form that is kept.
func (x *signalReader) raw(start *startKeeper) []byte {
	x.leaveOut(start.left+x.drop(x.r.Body), "form")
	return start.kept
}

// boundary returns the boundary of a form: the one in Content-Type, unless the form begins with
// another.
func (x *signalReader) boundary(form *bufio.Reader, declared string) string {
	start, _ := form.Peek(maxBoundary) // a later read returns the error
	line, _, ended := bytes.Cut(bytes.TrimLeft(start, "\r\n"), []byte("\n"))
	first, begins := strings.CutPrefix(strings.TrimRight(string(line), " \t\r"), "--")
	switch {
	case declared != "" && strings.HasPrefix(first, declared):
	case begins && ended && first != "":
		x.q.Warn("The form is read with the boundary that it begins with, because Content-Type names another one, or none")
		return first
	case declared == "":
		x.q.Warn("The form is read as a text, because the header Content-Type: multipart/form-data has no boundary")
	}
	return declared
}

// maxBoundary bounds the first line of a form, in bytes. A boundary has at most 70 (RFC 2046,
// section 5.1.1).
const maxBoundary = 200

// startKeeper keeps the first MaxBody bytes that are written to it, unless it is off.
type startKeeper struct {
	x    *signalReader
	off  bool
	kept []byte
	left int64 // how many more bytes are kept
}

func (s *startKeeper) Write(p []byte) (int, error) {
	if s.off {
		return len(p), nil
	}
	more := p[:min(int64(len(p)), s.x.q.limits.MaxBody-int64(len(s.kept)))]
	if s.x.q.texts.countText(len(more)) != nil { // out of memory
		more = nil
	}
	s.kept = append(s.kept, more...)
	s.left += int64(len(p) - len(more))
	return len(p), nil
}

// minPart is how much of a field is kept even if earlier fields were too large.
const minPart = 1 << 10

// readPart reads a part of a form, or the beginning of a field that is too large. If the body
// ends within the part, reading the next part fails.
func (x *signalReader) readPart(f *multipartReader, part *multipart.Part) {
	name, file := part.FormName(), part.FileName()
	media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	isPayload := name == payloadPart && isJSON(media)
	if file != "" && !isPayload && !slices.Contains(x.names, name) {
		a, err := x.q.files.read(printable(file)+" of the form", file, part.Header.Get("Content-Type"), part)
		if err != nil {
			x.note(err)
			x.q.lost = append(x.q.lost, printable(file))
			return
		}
		x.q.files.attached = append(x.q.files.attached, a)
		return
	}
	size := max(f.remaining, minPart)
	b, err := x.q.texts.readBuffer(io.LimitReader(&endingReader{r: part}, size), size)
	if err != nil { // no memory
		x.note(err)
		return
	}
	defer putBuffer(b)
	f.remaining -= int64(b.Len())
	x.keepTail(b.Bytes())
	x.leaveOut(x.drop(part), "form")
	text := x.decode(b.Bytes(), charset.OfType(part.Header.Get("Content-Type")))
	if isPayload {
		f.payload = x.members(slices.Clone(text))
		return
	}
	fields := x.q.content.fields
	fields[name] = field{texts: append(fields[name].texts, string(text))}
}

// SignalField returns a field of the body of a signal, or "" if it has none that can be read.
func (q *Request) SignalField(name string) string {
	text, err := q.content.fields[name].text(name)
	if err != nil {
		q.Warn("A part of the request is left out: " + err.Error())
	}
	return text
}

// SignalText returns the body of a signal if it is a text and not a form, or "".
func (q *Request) SignalText() string { return strings.TrimSpace(q.SignalField(fieldBody)) }

// Signal returns the message of a signal, without its attachments. Mistakes in it become warnings,
// except a wrong type in the query string.
func (q *Request) Signal() (*notifier.Message, error) {
	m := &notifier.Message{Foreign: q.content.foreign, Dialect: q.content.dialect, Time: q.message.Time}
	get := func(name string) string { return cmp.Or(q.SignalField(name), last(q.content.query[name])) }
	m.Title, m.Body = markup.OneLine(get(fieldTitle)), get(fieldBody)
	var err error
	if m.Format, err = markup.ParseFormat(get(fieldFormat)); err != nil {
		q.Warn("The format is unknown, so the body is a plain text")
	}
	q.content.acknowledgeText(m)
	if typ := q.SignalField(fieldType); typ != "" {
		if t, known := typeword.TypeOf(typ); known {
			m.Type = t
		} else {
			q.Warn(fmt.Sprintf("The type %q is unknown; use info, success, warning or failure", markup.TruncateBytes(typ, maxPrintedWord)))
		}
	}
	if m.Type == "" {
		if m.Type, err = notifier.ParseType(last(q.content.query[fieldType])); err != nil {
			return nil, badField(fieldType, "the field type: %w", err)
		}
	}
	if q.files.refs, err = q.files.readRefs(&q.content, true); err != nil {
		q.Warn("The files that the request names are left out: " + err.Error())
	}
	if q.leftOut != "" {
		m.Body = appendLine(m.Body, m.Format, "\n", "("+q.leftOut+")")
	}
	for _, name := range q.lost {
		m.Body = appendLine(m.Body, m.Format, "\n", "Left out: "+name)
	}
	return m, nil
}

// SetText makes a payload that cannot be read the text of a signal.
func (q *Request) SetText(payload []byte) {
	if text, _ := charset.Decode(payload, ""); charset.IsText(payload, "") && len(bytes.TrimSpace(text)) > 0 {
		q.content.fields = map[string]field{fieldBody: {texts: []string{string(text)}}}
	}
}

// last returns the last of several texts, or "".
func last(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}
