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
)

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
	given := slices.ContainsFunc(askFields, func(name string) bool { return !q.content.fields[name].absent() })
	if !given {
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
		return nil, badField(fieldAsk, "the field ask.%s is %s, which it cannot be; see the example {\"options\": [\"deploy\", \"wait\"], \"timeout\": \"10m\"}", e.Field, article(e.Value))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return nil, badField(fieldAsk, "the field ask has no member %s; it can have %s", name, strings.Join(askMembers, ", "))
		}
		return nil, badField(fieldAsk, "the field ask cannot be read: %w", err)
	}
	a := &message.Ask{Options: v.Options, Text: v.Text, Default: v.Default, Login: v.Login, Tell: v.Tell, Callback: v.Callback, Secret: v.Secret}
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
