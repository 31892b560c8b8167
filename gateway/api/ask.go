package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
)

// Ask is the question of a message: how it can be answered, and how the client hears of it.
type Ask struct {
	Options  []string      // of which one is the answer
	Text     bool          // the answer is a text
	Timeout  time.Duration // after which nobody can answer; 0 for [DefaultAskTimeout]
	Default  string        // the answer that counts if nobody answers; "" for none
	Login    bool          // the page is behind the login of the site
	Tell     bool          // those who were asked are told the outcome
	Callback string        // an address that is told the outcome; "" for none
	Secret   string        // of Standard Webhooks, for the callback; "" for none
}

// The bounds of a question.
const (
	MinOptions        = 2
	MaxOptions        = 6
	MaxOption         = 40 // characters
	MaxAnswer         = 2000
	MinAskTimeout     = 10 * time.Second
	MaxAskTimeout     = 7 * 24 * time.Hour
	DefaultAskTimeout = time.Hour
	maxCallback       = 2000 // bytes
)

// The fields of a question. In a form, fieldAsk is repeated, once for each option, and the
// others are those of the object with askPrefix.
const (
	fieldAsk  = "ask"
	askPrefix = fieldAsk + "_"
)

// askMembers are the members of the object of a question.
var askMembers = []string{"options", "text", "timeout", "default", "login", "tell", "callback", "secret"}

// askFields are the fields of a question in a form.
func askFields() []string {
	out := []string{fieldAsk}
	for _, name := range askMembers[1:] {
		out = append(out, askPrefix+name)
	}
	return out
}

// Ask returns the question of the request, or nil if it asks none. parse parses a duration.
func (q *Request) Ask(parse func(string) (time.Duration, error)) (*Ask, error) {
	given := slices.ContainsFunc(askFields(), func(name string) bool { return !q.content.fields[name].absent() })
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
func (c *content) readAsk(parse func(string) (time.Duration, error)) (*Ask, error) {
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
	a := &Ask{Default: values["default"], Callback: values["callback"], Secret: values["secret"]}
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
func readAskJSON(text json.RawMessage, parse func(string) (time.Duration, error)) (*Ask, error) {
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
	a := &Ask{Options: v.Options, Text: v.Text, Default: v.Default, Login: v.Login, Tell: v.Tell, Callback: v.Callback, Secret: v.Secret}
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

// Check returns an [*Error] that names the field if the question cannot be asked. It sets the
// timeout if there is none.
func (a *Ask) Check() error {
	if a.Timeout == 0 {
		a.Timeout = DefaultAskTimeout
	}
	if a.Timeout < MinAskTimeout || a.Timeout > MaxAskTimeout {
		return badField(fieldAsk, "the field ask.timeout must be from 10s to 7d")
	}
	if err := a.checkAnswers(); err != nil {
		return err
	}
	return a.checkCallback()
}

// checkAnswers checks the options and the default.
func (a *Ask) checkAnswers() error {
	switch {
	case a.Text && len(a.Options) > 0:
		return badField(fieldAsk, "the field ask has options and text; leave out options for a free answer, or text for a choice")
	case a.Text && utf8.RuneCountInString(a.Default) > MaxAnswer:
		return badField(fieldAsk, "the field ask.default is longer than %d characters", MaxAnswer)
	case a.Text:
		return nil
	case len(a.Options) < MinOptions || len(a.Options) > MaxOptions:
		return badField(fieldAsk, "the field ask.options must have %d to %d options, and has %d; for a free answer, set text instead", MinOptions, MaxOptions, len(a.Options))
	}
	for i, o := range a.Options {
		switch n := utf8.RuneCountInString(o); {
		case n == 0 || n > MaxOption || strings.TrimSpace(o) != o || strings.ContainsFunc(o, unicode.IsControl):
			return badField(fieldAsk, "the field ask.options[%d] must be 1 to %d characters in one line, without a space at its ends", i, MaxOption)
		case slices.Contains(a.Options[:i], o):
			return badField(fieldAsk, "the field ask.options[%d] is the same as one before it; make the options different", i)
		}
	}
	if a.Default != "" && !slices.Contains(a.Options, a.Default) {
		return badField(fieldAsk, "the field ask.default must be one of the options")
	}
	return nil
}

// checkCallback checks the address that is told the outcome. Where it leads is decided when
// it is called.
func (a *Ask) checkCallback() error {
	if a.Callback == "" {
		if a.Secret != "" {
			return badField(fieldAsk, "the field ask.secret signs the callback, so that it needs the field ask.callback")
		}
		return nil
	}
	u, err := url.Parse(a.Callback)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(a.Callback) > maxCallback {
		return badField(fieldAsk, "the field ask.callback must be an http or https address without a password, of at most %d bytes", maxCallback)
	}
	if a.Secret != "" {
		if _, err := standardwebhook.ParseKey(a.Secret); err != nil {
			return badField(fieldAsk, "the field ask.secret %w", err)
		}
	}
	return nil
}

// CallbackHost returns the host of the address that is told the outcome, without a port, or "".
func (a *Ask) CallbackHost() string {
	u, err := url.Parse(a.Callback)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// CheckAnswer returns an error, one sentence, if text is no answer to the question.
func CheckAnswer(text string, options []string) error {
	switch {
	case len(options) > 0 && !slices.Contains(options, text):
		return fmt.Errorf("the answer must be one of the options: %s", strings.Join(options, ", "))
	case strings.TrimSpace(text) == "":
		return errors.New("the answer is empty; type one")
	case utf8.RuneCountInString(text) > MaxAnswer:
		return fmt.Errorf("the answer is longer than %d characters; make it shorter", MaxAnswer)
	}
	return nil
}

// AskState is what clients see of a question.
type AskState struct {
	State string    `json:"state"` // open, answered, expired or cancelled
	Until time.Time `json:"until"` // when it expires, or would have

	// For who may send to the key or manage, if there is an answer, also the default of a
	// question that has expired.
	Answer  *string    `json:"answer,omitempty"`
	By      string     `json:"by,omitempty"`      // who has answered
	At      *time.Time `json:"at,omitempty"`      // when it was decided
	Through string     `json:"through,omitempty"` // the destination whose link was used
}

// text returns the state in a sentence.
func (s *AskState) text() string {
	switch {
	case s.State == "open":
		return "The question is open until " + formatTime(s.Until)
	case s.Answer == nil:
		return "The question is " + s.State
	case s.By == "":
		return "The question is " + s.State + ": " + *s.Answer
	}
	return "The question is " + s.State + ": " + *s.Answer + ", by " + s.By
}
