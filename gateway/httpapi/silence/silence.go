// Package silence has the JSON and the form of silences for the HTTP API, the pages and the admin
// API.
package silence

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Request is the JSON or the form of a silence to make.
type Request struct {
	From     string `json:"from"`  // a time; "" for now
	For      string `json:"for"`   // a duration from From, such as 2h
	Until    string `json:"until"` // instead of For: a time, a time of the day, or "resolved"
	Incident string `json:"incident"`
	Tag      string `json:"tag"`
	Title    string `json:"title"`
	Reason   string `json:"reason"`
	Who      string `json:"who"` // used if Caddy's authentication has found nobody
	Tell     bool   `json:"tell"`
}

// MaxRequest bounds the body of a request for a silence, in bytes.
const MaxRequest = 16 << 10

// tellField is the form field that is not a text.
const tellField = "tell"

// errFields is returned for a body that does not describe a silence.
var errFields = errors.New("the body must be a form or one JSON object with the fields from, for or until, incident, tag, title, reason " +
	"and who, all of them texts, and tell, which is true or false")

// texts returns the text fields of a request by their names in a form.
func (s *Request) texts() map[string]*string {
	return map[string]*string{
		"from": &s.From, "for": &s.For, "until": &s.Until, "incident": &s.Incident, "tag": &s.Tag, "title": &s.Title, "reason": &s.Reason,
		"who": &s.Who,
	}
}

// Read reads the body of r, which is JSON or a form.
func Read(w http.ResponseWriter, r *http.Request) (s Request, err error) {
	if err := api.DecodeBody(w, r, MaxRequest); err != nil {
		return s, err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "application/json":
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil || d.More() {
			if e := api.BodyError(err); err != nil && e.Status != http.StatusBadRequest {
				return s, e
			}
			return s, &api.Error{Status: http.StatusBadRequest, Err: errFields}
		}
		return s, nil
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return s, api.BodyError(err)
		}
		for name := range r.PostForm {
			if name != tellField && s.texts()[name] == nil { // for example form instead of from, with which the silence would begin now
				return s, &api.Error{Status: http.StatusBadRequest, Err: errFields}
			}
		}
		return OfForm(r.PostForm.Get)
	}
	return s, api.Errorf(http.StatusUnsupportedMediaType,
		"the body of a silence is a form or JSON; set Content-Type to application/x-www-form-urlencoded or application/json")
}

// OfForm returns the request in the fields of a form. The error is an [*api.Error].
func OfForm(field func(string) string) (s Request, err error) {
	for name, text := range s.texts() {
		*text = field(name)
	}
	switch strings.ToLower(field(tellField)) {
	case "", "0", "false", "no", "off":
	case "1", "true", "yes", "on":
		s.Tell = true
	default:
		return s, api.Errorf(http.StatusBadRequest, "tell must be true or false")
	}
	return s, nil
}

// Silence returns the silence that s describes. user is who asks for it; "" if unknown. parse
// parses a duration, which may be in days. The error is a [*message.Error].
func (s *Request) Silence(user string, now time.Time, parse func(string) (time.Duration, error)) (x rules.Silence, err error) {
	if x, err = s.silence(user, now, parse); err != nil {
		err = &message.Error{Kind: message.Invalid, Err: err}
	}
	return x, err
}

func (s *Request) silence(user string, now time.Time, parse func(string) (time.Duration, error)) (x rules.Silence, err error) {
	x = rules.Silence{
		ID: queue.NewID(), Made: now, Incident: s.Incident, Tag: s.Tag, Title: s.Title, Reason: s.Reason, Who: s.Who,
		Tell: s.Tell,
	}
	if user != "" {
		x.Who = user
	}
	if x.From, err = readTime("from", s.From); err != nil {
		return x, err
	}
	if s.From == "" {
		x.From = now
	}
	switch {
	case (s.For == "") == (s.Until == ""):
		err = errors.New("a silence needs an end: for with a duration, such as 2h, or until with a time, such as 2026-03-28T07:00:00Z or " +
			"08:00, or resolved for an incident, and not both")
	case s.For != "":
		var d time.Duration
		if d, err = parse(s.For); err != nil || d <= 0 {
			err = errors.New("for: it must be a duration above 0, such as 30m, 2h or 3d")
		}
		x.For, x.Until = d, x.From.Add(d)
	case strings.EqualFold(s.Until, UntilResolved):
		x.UntilResolved, x.Until = true, x.From.Add(rules.MaxSilenceTime)
	default:
		x.Until, err = ReadEnd(s.Until, x.From)
	}
	if err == nil {
		err = x.Normalize(now)
	}
	return x, err
}

// errLonger is returned for a request to extend a silence that has no new end, or more than that.
var errLonger = errors.New("a silence is made longer by for with a duration, such as 1h, or until with a time, such as " +
	"2026-03-28T07:00:00Z or 08:00, and nothing else")

// Longer returns the function that returns the new end of a silence for the present one. The error is
// a [*message.Error].
func (s *Request) Longer(parse func(string) (time.Duration, error)) (func(end time.Time) time.Time, error) {
	d, errFor := parse(s.For)
	_, errUntil := ReadEnd(s.Until, time.Time{})
	switch {
	case *s != Request{For: s.For, Until: s.Until} || (s.For == "") == (s.Until == ""),
		s.For != "" && (errFor != nil || d <= 0), s.Until != "" && errUntil != nil:
		return nil, &message.Error{Kind: message.Invalid, Err: errLonger}
	case s.For != "":
		return func(end time.Time) time.Time { return end.Add(d) }, nil
	}
	return func(end time.Time) time.Time {
		at, _ := ReadEnd(s.Until, end)
		return at
	}, nil
}

// UntilResolved is the field until of a silence that ends when its incident is resolved.
const UntilResolved = "resolved"

// ReadEnd reads the end of a silence that begins at a time. A time of the day, such as 08:00, is the
// next one in the zone of the server.
func ReadEnd(text string, from time.Time) (time.Time, error) {
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return readTime("until", text)
	}
	local := from.Local() //nolint:gosmopolitan // its users live in the server's zone
	at := func(days int) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()+days, clock.Hour(), clock.Minute(), 0, 0, local.Location())
	}
	if at(0).After(from) {
		return at(0), nil
	}
	return at(1), nil
}

// readTime reads a time from a field. "" means the zero time.
func readTime(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = errors.New(field + ": it must be a time with a date and a zone, such as 2026-03-28T07:00:00Z or 2026-03-28T07:00:00+01:00")
	}
	return at, err
}

// JSON is the JSON of a silence.
type JSON struct {
	ID         string    `json:"id"`
	Key        string    `json:"key"`
	State      string    `json:"state"`         // planned or active
	Made       time.Time `json:"made,omitzero"` // missing for a configured silence
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	Resolved   bool      `json:"until_resolved,omitempty"` // it ends when its incident is resolved, and then at the latest
	Incident   string    `json:"incident,omitempty"`
	Tag        string    `json:"tag,omitempty"`
	Title      string    `json:"title,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Who        string    `json:"who,omitempty"`
	Tell       bool      `json:"tell,omitempty"`
	Configured bool      `json:"configured,omitempty"` // it is part of the configuration
	Messages   int       `json:"messages"`             // messages that it has kept from a destination
}

// The states of a silence.
const (
	Planned = "planned" // it begins later
	Active  = "active"
)

// New returns the JSON of a silence of a key.
func New(key string, s *rules.Silence, now time.Time) JSON {
	x := JSON{
		ID: s.ID.String(), Key: key, State: Active, From: s.Begins().UTC(), Until: s.Until.UTC(), Resolved: s.UntilResolved,
		Incident: s.Incident, Tag: s.Tag, Title: s.Title,
		Reason: s.Reason, Who: s.Who, Tell: s.Tell, Configured: s.Window != uuid.UUID{}, Messages: s.Count,
	}
	if s.Planned(now) {
		x.State = Planned
	}
	if !x.Configured {
		x.Made = s.Made.UTC()
	}
	return x
}

// List returns the JSON of the silences of a key, which is never nil.
func List(key string, all rules.Silences, now time.Time) []JSON {
	out := make([]JSON, len(all))
	for i := range all {
		out[i] = New(key, &all[i], now)
	}
	return out
}

// ParseID returns the ID of a silence, or the zero ID, which no silence has.
func ParseID(text string) uuid.UUID {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.UUID{}
	}
	return id
}
