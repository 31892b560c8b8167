package httpapi

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silenceRequest is the JSON or the form of a silence to make.
type silenceRequest struct {
	For      string `json:"for"`   // a duration, such as 2h
	Until    string `json:"until"` // a time; one of both
	Incident string `json:"incident"`
	Tag      string `json:"tag"`
	Title    string `json:"title"`
	Reason   string `json:"reason"`
	Who      string `json:"who"` // counts if Caddy's authentication has found nobody
}

// MaxSilenceRequest bounds the body of a request for a silence, in bytes.
const MaxSilenceRequest = 16 << 10

// errSilenceFields is returned for a body that is no silence.
var errSilenceFields = errors.New("the body must be a form or one JSON object with the fields for or until, incident, tag, title, reason and who, all of them texts")

// ReadSilenceRequest reads the body of r, which is JSON or a form.
func ReadSilenceRequest(w http.ResponseWriter, r *http.Request) (s silenceRequest, err error) {
	if err := api.LimitBody(w, r, MaxSilenceRequest); err != nil {
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
			return s, &api.Error{Status: http.StatusBadRequest, Err: errSilenceFields}
		}
		return s, nil
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return s, api.BodyError(err)
		}
		return SilenceOfForm(r.PostForm.Get), nil
	}
	return s, api.Errorf(http.StatusUnsupportedMediaType, "the body of a silence is a form or JSON; set Content-Type to application/x-www-form-urlencoded or application/json")
}

// SilenceOfForm returns the silence that the fields of a form ask for.
func SilenceOfForm(field func(string) string) silenceRequest {
	return silenceRequest{
		For: field("for"), Until: field("until"), Incident: field("incident"), Tag: field("tag"), Title: field("title"), Reason: field("reason"), Who: field("who"),
	}
}

// Silence returns the silence that is asked for. user is who asks; "" if nobody is known.
// parse parses a duration, which may be in days.
func (s *silenceRequest) Silence(user string, now time.Time, parse func(string) (time.Duration, error)) (x rules.Silence, err error) {
	x = rules.Silence{ID: queue.NewID(), Made: now, Incident: s.Incident, Tag: s.Tag, Title: s.Title, Reason: s.Reason, Who: s.Who}
	if user != "" {
		x.Who = user
	}
	switch {
	case (s.For == "") == (s.Until == ""):
		err = errors.New("a silence needs an end: for with a duration, such as 2h, or until with a time, such as 2026-03-28T07:00:00Z, and not both")
	case s.For != "":
		var d time.Duration
		if d, err = parse(s.For); err != nil || d <= 0 {
			err = errors.New("for: it must be a duration above 0, such as 30m, 2h or 3d")
		}
		x.Until = now.Add(d)
	default:
		if x.Until, err = time.Parse(time.RFC3339, s.Until); err != nil {
			err = errors.New("until: it must be a time with a date and a zone, such as 2026-03-28T07:00:00Z or 2026-03-28T07:00:00+01:00")
		}
	}
	if err == nil {
		err = x.Normalize(now)
	}
	return x, err
}

// SilenceJSON is the JSON of a silence.
type SilenceJSON struct {
	ID       string    `json:"id"`
	Key      string    `json:"key"`
	Made     time.Time `json:"made"`
	Until    time.Time `json:"until"`
	Incident string    `json:"incident,omitempty"`
	Tag      string    `json:"tag,omitempty"`
	Title    string    `json:"title,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Who      string    `json:"who,omitempty"`
	Messages int       `json:"messages"` // that it has kept from a destination
}

// NewSilenceJSON returns the JSON of a silence of a key.
func NewSilenceJSON(key string, s *rules.Silence) SilenceJSON {
	return SilenceJSON{s.ID.String(), key, s.Made.UTC(), s.Until.UTC(), s.Incident, s.Tag, s.Title, s.Reason, s.Who, s.Count}
}

// NewSilencesJSON returns the JSON of the silences of a key, which is never nil.
func NewSilencesJSON(key string, all rules.Silences) []SilenceJSON {
	out := make([]SilenceJSON, len(all))
	for i := range all {
		out[i] = NewSilenceJSON(key, &all[i])
	}
	return out
}
