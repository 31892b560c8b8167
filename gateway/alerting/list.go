package alerting

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// IncidentQuery selects a part of the incidents of some keys.
type IncidentQuery struct {
	Key   string                 // "" for all
	Stage notifier.IncidentState // "" for all
	After IncidentCursor
	Limit int  // of rows
	Fold  bool // equal incidents that are not resolved are one row

	Day time.Time // only those that were opened last on the day that begins then; zero for any
}

// on reports whether an incident that was opened at a time is one of the day of the query.
func (q *IncidentQuery) on(opened time.Time) bool {
	return q.Day.IsZero() || !opened.Before(q.Day) && opened.Before(q.Day.AddDate(0, 0, 1))
}

// IncidentCursor is a position in the list of incidents. The zero value is its beginning.
type IncidentCursor rank

// cursorForm is the text of a cursor, except the name.
const cursorForm = "%s %d %t %d %d"

// Encode returns the cursor as a parameter of an address.
func (c IncidentCursor) Encode() string {
	text := fmt.Sprintf(cursorForm, c.Stage, c.next, c.silent, c.kind, c.newest)
	return base64.RawURLEncoding.EncodeToString([]byte(string(c.name[:]) + text))
}

// decodeCursor is the inverse of [IncidentCursor.Encode]. It reports whether the text is valid.
func decodeCursor(text string) (c IncidentCursor, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < len(c.name) {
		return c, false
	}
	rest := string(b[copy(c.name[:], b):])
	n, err := fmt.Sscanf(rest, cursorForm, &c.Stage, &c.next, &c.silent, &c.kind, &c.newest)
	return c, err == nil && n == 5 && slices.Contains(rules.Stages, c.Stage)
}

// The number of incidents on a page.
const (
	DefaultIncidents = 100
	maxIncidents     = 1000
)

// ParseIncidentQuery reads the parameters key, state, day, after and limit.
func ParseIncidentQuery(v url.Values) (q IncidentQuery, err error) {
	q = IncidentQuery{Key: v.Get("key"), Stage: notifier.IncidentState(v.Get("state")), Limit: DefaultIncidents}
	if q.Stage != "" && !slices.Contains(rules.Stages, q.Stage) {
		return q, message.Errorf(message.Invalid, "state must be open, acknowledged or resolved")
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > maxIncidents {
			return q, message.Errorf(message.Invalid, "limit must be a number from 1 to %d", maxIncidents)
		}
	}
	if text := v.Get("day"); text != "" {
		if q.Day, err = timetext.ParseDay(text); err != nil {
			return q, message.Errorf(message.Invalid, "day must be a date such as 2026-11-28")
		}
	}
	if text := v.Get("after"); text != "" {
		var ok bool
		if q.After, ok = decodeCursor(text); !ok {
			return q, message.Errorf(message.Invalid, "after is malformed; use the address that the field next has")
		}
	}
	return q, nil
}

// Address returns the address of the page after a cursor.
func (q *IncidentQuery) Address(path string, after IncidentCursor) string {
	v := url.Values{}
	for name, value := range map[string]string{"key": q.Key, "state": string(q.Stage)} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if !q.Day.IsZero() {
		v.Set("day", q.Day.Format(time.DateOnly))
	}
	if q.Limit != DefaultIncidents {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if after != (IncidentCursor{}) {
		v.Set("after", after.Encode())
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// PlacesOfSite adds the places of keys of a site, or of the key with a name. If the saved
// keys cannot be listed, it adds the others and returns an error.
func PlacesOfSite(ctx context.Context, r *site.Site, siteID, only string, places []string) ([]string, error) {
	for name, k := range r.Keys {
		if only == "" || name == only {
			places = append(places, k.Place(siteID).String())
		}
	}
	if !r.Saved.On() || r.Saved.Rules.Empty() {
		return places, nil
	}
	names := []string{only}
	if only == "" {
		var err error
		if names, err = r.Saved.Names(ctx); err != nil {
			return places, saved.ErrUnavailable(err)
		}
	}
	saved, err := r.Saved.Places(ctx, names)
	for _, name := range names {
		if place := saved[name]; place != "" {
			places = append(places, place)
		}
	}
	return places, err
}

// Places returns the places of all keys, or of those with a name.
func Places(ctx context.Context, a *site.Directory, key string) ([]string, error) {
	places, err := PlacesOfSite(ctx, a.Global, "", key, nil)
	for _, r := range a.Sites {
		if err == nil {
			places, err = PlacesOfSite(ctx, r, a.SiteID(r), key, places)
		}
	}
	return places, err
}

// IncidentJSON is an incident as clients see it: without the texts of its messages.
type IncidentJSON struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	State string `json:"state"` // open, acknowledged or resolved
	Type  string `json:"type"`
	Title string `json:"title"`

	Incident string   `json:"incident,omitempty"` // the field of its messages
	Source   string   `json:"source"`             // of the message that opened it
	Tags     []string `json:"tags"`               // of the destinations

	Opened     time.Time `json:"opened"`
	Changed    time.Time `json:"changed"` // its last message
	Resolved   time.Time `json:"resolved,omitzero"`
	ResolvedBy string    `json:"resolved_by,omitempty"` // who did so, if no message did

	Acknowledged *acknowledgementJSON `json:"acknowledged,omitempty"`
	Escalation   *escalationJSON      `json:"escalation,omitempty"`
	Begun        []begunStepJSON      `json:"begun,omitempty"` // steps, the latest last
}

type acknowledgementJSON struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // when the escalation begins again
}

type escalationJSON struct {
	Step      int       `json:"step"`  // that was begun last
	Steps     []int     `json:"steps"` // the numbers of all
	Round     int       `json:"round"`
	Next      time.Time `json:"next,omitzero"` // when the next step begins
	Exhausted bool      `json:"exhausted"`     // all rounds have ended
}

type begunStepJSON struct {
	Round   int       `json:"round"`
	Step    int       `json:"step"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // sending, told, failed or silenced
}

// NewIncidentJSON returns an incident of the key with a name as clients see it.
func NewIncidentJSON(x *rules.Incident, key string) IncidentJSON {
	out := IncidentJSON{
		ID: x.ID, Key: key, State: string(x.Stage()), Type: string(x.Type), Title: x.Title, Incident: x.Name, Source: x.Source,
		Tags: append([]string{}, x.Tags...), Opened: x.Opened, Changed: x.Changed, Resolved: x.Resolved.UTC(), ResolvedBy: x.ResolvedBy,
	}
	if a := x.Acknowledged; x.IsAcknowledged() {
		out.Acknowledged = &acknowledgementJSON{a.By, a.At, a.Until.UTC()}
	}
	if e := &x.Escalation; e.Round > 0 {
		_, next := e.NextStep()
		out.Escalation = &escalationJSON{e.Step, IncidentSteps(x), e.Round, next.UTC(), e.Exhausted}
	}
	for _, s := range x.Begun {
		out.Begun = append(out.Begun, begunStepJSON{s.Round, s.Step, s.At, cmp.Or(string(s.Outcome), "sending")})
	}
	return out
}

// IncidentSteps returns the numbers of the steps of an incident.
func IncidentSteps(x *rules.Incident) []int {
	return append([]int{}, x.Escalation.Steps()...)
}

// IncidentsJSON is a page of incidents.
type IncidentsJSON struct {
	Incidents []IncidentJSON `json:"incidents"`
	Next      string         `json:"next,omitempty"` // address of the next page
}

// NewIncidentsJSON returns a page of incidents whose address has the path. nameOf returns the
// name of the key of one.
func NewIncidentsJSON(list []StoredIncident, nameOf func(*rules.Incident) string, path string, by *IncidentQuery,
	next IncidentCursor,
) IncidentsJSON {
	out := IncidentsJSON{Incidents: make([]IncidentJSON, len(list))}
	for i, x := range list {
		out.Incidents[i] = NewIncidentJSON(x.Incident, nameOf(x.Incident))
	}
	if next != (IncidentCursor{}) {
		out.Next = by.Address(path, next)
	}
	return out
}
