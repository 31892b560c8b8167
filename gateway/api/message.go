package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// Message returns the message without its attachments, which [Request.Attachments]
// returns. A message has a body or an attachment.
func (q *Request) Message() (*notifier.Message, error) {
	m, err := q.readMessage()
	q.warnings.addUnread(&q.content)
	if err == nil && strings.TrimSpace(m.Body) == "" && len(q.files.refs)+len(q.files.attached) == 0 {
		return nil, q.missingBody()
	}
	return m, err
}

// readMessage returns the message of a request, which may have neither a body nor attachments.
func (q *Request) readMessage() (*notifier.Message, error) {
	m, err := q.Draft()
	if err != nil {
		return nil, err
	}
	m.Title = markup.OneLine(m.Title)
	typ, err := q.content.text(fieldType)
	if err != nil {
		return nil, err
	}
	if m.Type, err = q.parseType(typ); err != nil {
		return nil, err
	}
	if m.Incident, err = q.incident(typ); err != nil {
		return nil, err
	}
	if q.files.refs, err = q.files.readRefs(&q.content, q.payload.linkFiles); err != nil {
		return nil, err
	}
	return m, nil
}

// parseType parses the type of the message. In a mapping or a header, the type comes from another
// program: it may be any word that [typeword.TypeOf] knows, and an unknown word means info and a
// warning.
func (q *Request) parseType(s string) (notifier.Type, error) {
	if !q.content.fields[fieldType].mapped {
		t, err := notifier.ParseType(s)
		if err != nil {
			return "", badField(fieldType, "the field type: %w", err)
		}
		return t, nil
	}
	t, ok := typeword.TypeOf(s)
	if !ok {
		q.warnings.add("The type %q is unknown, so the message has the type info; map it to a field with info, success, warning, failure or a "+
			"word such as firing or resolved", markup.TruncateBytes(s, maxPrintedWord))
	}
	return t, nil
}

// incident returns the incident of a message of the type typ. It has no ID, because that depends on
// the destination's key.
func (q *Request) incident(typ string) (i notifier.Incident, err error) {
	text, err := q.content.text(fieldIncident)
	if err != nil {
		return i, err
	}
	name, hashed, err := notifier.IncidentName(text)
	if err != nil {
		return i, badField(fieldIncident, "the field incident: %w", err)
	}
	if hashed {
		q.warnings.add("The incident is longer than %d bytes, so its SHA-256 hash is used", notifier.MaxIncidentName)
	}
	i.Name, i.Alerts = name, notifier.AlertWords(q.payload.alerts)
	if q.payload.acknowledged || q.content.fields[fieldType].mapped && typeword.IsAcknowledgement(typ) {
		i.State = notifier.Acknowledged
	}
	return i, nil
}

// maxPrintedWord bounds a word of the client in a warning, in bytes.
const maxPrintedWord = 40

// Draft returns the title, body and format of an unfinished message, as they
// are: the title may have several lines, and the body may be missing.
func (q *Request) Draft() (*notifier.Message, error) {
	m := &q.message
	*m = notifier.Message{Foreign: q.content.foreign, Dialect: q.content.dialect, Time: m.Time}
	var err error
	if m.Body, err = q.content.text(fieldBody); err != nil {
		return nil, err
	}
	if m.Title, err = q.content.text(fieldTitle); err != nil {
		return nil, err
	}
	format, err := q.content.text(fieldFormat)
	if err != nil {
		return nil, err
	}
	if m.Format, err = markup.ParseFormat(format); err != nil {
		return nil, badField(fieldFormat, "the field format: %w", err)
	}
	q.content.acknowledgeText(m)
	return m, nil
}

// FormField returns a field of a form that does not belong to the message, or "".
func (q *Request) FormField(name string) string {
	if texts := q.content.fields[name].texts; len(texts) > 0 {
		return texts[len(texts)-1]
	}
	return ""
}

// missingBody returns the error for a message without a body, with advice for
// the mistakes that are most likely to cause it.
func (q *Request) missingBody() *Error {
	switch {
	case q.content.jsonForm:
		return badField(fieldBody, "the field body is missing; the request is JSON but was sent as a form, so add the header Content-Type: "+
			"application/json")
	case len(q.content.fields[payloadPart].texts) > 0:
		return badField(fieldBody, "the field body is missing; the form has a part payload, which is read only if the part has Content-Type: "+
			"application/json")
	}
	for _, name := range q.content.unread() {
		if likelyFields[strings.ToLower(name)] == fieldBody {
			return badField(fieldBody, "the field body is missing; if it is the field %s, rename that, or add ?:%[1]s=body to the address", name)
		}
	}
	return badField(fieldBody, "the field body is missing; send a body, an attachment or both")
}

// fieldSendAt is the field of a message that is sent later. The query string may set it.
const fieldSendAt = "send_at"

// MaxDelay is the longest delay of a message.
const MaxDelay = 30 * 24 * time.Hour

// SendAt returns when the message is to be sent, or the zero time for now. delay is the duration
// that the client has asked for, or 0. clock returns the present time, and parse parses a duration.
// For a time in the past, SendAt returns now and sets passed, so that a client that was offline for
// a while does not lose its message.
func (q *Request) SendAt(
	clock func() time.Time, parse func(string) (time.Duration, error),
) (at time.Time, delay time.Duration, passed bool, err error) {
	text, err := q.content.text(fieldSendAt)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return at, 0, false, err
	}
	now := clock()
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		if delay, err = parse(text); err != nil {
			return at, 0, false, badField(fieldSendAt, "the field send_at must be a time with a date and a zone, "+
				"such as 2026-12-24T18:00:00+01:00, or a duration from now, such as 30m or 2d")
		}
		at = now.Add(delay)
	}
	switch {
	case at.After(now.Add(MaxDelay)):
		return at, 0, false, badField(fieldSendAt, "the field send_at is more than 30 days ahead, which is the limit")
	case !at.After(now):
		return time.Time{}, 0, true, nil
	}
	return at, delay, false, nil
}

// Wish returns whom the client wants to reach.
func (q *Request) Wish() (w message.Wish, err error) {
	if w.Tags, err = q.content.tags(); err != nil {
		return w, err
	}
	w.Values, err = q.content.values()
	w.Preferred = q.payload.preferred
	return w, err
}

// The fields of a question. A form has them under the prefix askPrefix, and fieldAsk once for each
// option. JSON has an object askPrefix with the other fields as members.
const (
	fieldAsk  = "ask"
	askPrefix = fieldAsk + "_"
)

// askMembers are the members of the object of a question.
var askMembers = []string{"options", "text", "timeout", "default", "login", "tell", "callback", "secret"}

// askFields are the fields of a question in a form.
var askFields = func() []string {
	out := []string{fieldAsk}
	for _, name := range askMembers[1:] {
		out = append(out, askPrefix+name)
	}
	return out
}()

// Ask returns the question of the request, or nil if it asks none. parse parses a duration.
func (q *Request) Ask(parse func(string) (time.Duration, error)) (*message.Ask, error) {
	asks := false
	for name, f := range q.content.fields { // few, while there are many fields of a question
		asks = asks || strings.HasPrefix(name, fieldAsk) && slices.Contains(askFields, name) && !f.absent()
	}
	if !asks {
		return nil, nil
	}
	if !q.content.fields[fieldSendAt].absent() || len(q.content.query[fieldSendAt]) > 0 {
		return nil, badField(fieldAsk, "the field ask cannot stand with send_at: a question is asked now, so leave one of them out")
	}
	if !q.content.fields[fieldIncident].absent() || len(q.content.query[fieldIncident]) > 0 {
		return nil, badField(fieldAsk, "the field ask cannot stand with incident: a question is an incident of its own, so leave one of them out")
	}
	a, err := q.content.readAsk(parse)
	if err != nil {
		return nil, err
	}
	return a, a.Check()
}

// readAsk reads the fields of a question, which are not checked.
func (c *content) readAsk(parse func(string) (time.Duration, error)) (*message.Ask, error) {
	f := c.fields[fieldAsk]
	switch t := jsonType(f.json); {
	case t == jsonObject:
		return readAskJSON(f.json, parse)
	case t != jsonNull:
		return nil, wrongType(fieldAsk, t, jsonObject)
	}
	options, err := f.items(fieldAsk, false)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, name := range askMembers[1:] {
		if values[name], err = c.fields[askPrefix+name].text(askPrefix + name); err != nil {
			return nil, err
		}
	}
	a := &message.Ask{Default: values["default"], Callback: values["callback"], Secret: values["secret"]}
	for _, o := range options {
		a.Options = append(a.Options, o.text)
	}
	if a.Timeout, err = askTimeout(values["timeout"], parse); err != nil {
		return nil, err
	}
	for name, to := range map[string]*bool{"text": &a.Text, "login": &a.Login, "tell": &a.Tell} {
		if values[name] == "" {
			continue
		}
		if *to, err = strconv.ParseBool(values[name]); err != nil {
			return nil, badField(fieldAsk, "the field ask_%s must be true or false", name)
		}
	}
	return a, nil
}

// readAskJSON reads the object of a question.
func readAskJSON(text json.RawMessage, parse func(string) (time.Duration, error)) (*message.Ask, error) {
	var v struct {
		Options  []string `json:"options"`
		Text     bool     `json:"text"`
		Timeout  string   `json:"timeout"`
		Default  string   `json:"default"`
		Login    bool     `json:"login"`
		Tell     bool     `json:"tell"`
		Callback string   `json:"callback"`
		Secret   string   `json:"secret"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&v)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, badField(fieldAsk, "the field ask.%s is %s, which it cannot be; see the example "+
			"{\"options\": [\"deploy\", \"wait\"], \"timeout\": \"10m\"}", e.Field, article(e.Value))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return nil, badField(fieldAsk, "the field ask has no member %s; it can have %s", name, strings.Join(askMembers, ", "))
		}
		return nil, badField(fieldAsk, "the field ask cannot be read: %w", err)
	}
	a := &message.Ask{
		Options: v.Options, Text: v.Text, Default: v.Default, Login: v.Login, Tell: v.Tell, Callback: v.Callback,
		Secret: v.Secret,
	}
	a.Timeout, err = askTimeout(v.Timeout, parse)
	return a, err
}

// article returns the name of a JSON type with its article.
func article(jsonType string) string {
	if strings.HasPrefix(jsonType, "a") || strings.HasPrefix(jsonType, "o") {
		return "an " + jsonType
	}
	return "a " + jsonType
}

func askTimeout(text string, parse func(string) (time.Duration, error)) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := parse(text)
	if err != nil || d == 0 {
		return 0, badField(fieldAsk, "the field ask.timeout must be a duration such as 10m or 2h")
	}
	return d, nil
}
