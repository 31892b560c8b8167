package alerting

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// IncidentQuery selects a part of the incidents of some keys.
type IncidentQuery struct {
	Key   string                 // "" for all
	Stage notifier.IncidentState // "" for all
	After IncidentCursor
	Limit int
}

// IncidentCursor is a position in the list of incidents. The zero value is its beginning.
type IncidentCursor struct {
	Stage notifier.IncidentState
	place string // of the key
	name  queue.Hash
}

// Encode returns the cursor as a parameter of an address.
func (c IncidentCursor) Encode() string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(c.name[:]) + string(c.Stage) + "\x00" + c.place))
}

// decodeCursor is the inverse of [IncidentCursor.Encode]. It reports whether the text is valid.
func decodeCursor(text string) (c IncidentCursor, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < len(c.name) {
		return c, false
	}
	rest := string(b[copy(c.name[:], b):])
	stage, place, ok := strings.Cut(rest, "\x00")
	c.Stage, c.place = notifier.IncidentState(stage), place
	return c, ok && slices.Contains(rules.Stages, c.Stage)
}

// The number of incidents on a page.
const (
	DefaultIncidents = 100
	maxIncidents     = 1000
)

// ParseIncidentQuery reads the parameters key, state, after and limit.
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

// List returns the incidents of the keys with these places, the worst stage
// first, and the cursor of the next page, or the zero value if no more follow.
func (i *Incidents) List(ctx context.Context, places []string, by *IncidentQuery) (out []StoredIncident, next IncidentCursor, err error) {
	sizes, err := i.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return nil, next, err
	}
	places = slices.Compact(slices.Sorted(slices.Values(places)))
	begun := by.After == IncidentCursor{}
	for _, stage := range rules.Stages {
		begun = begun || stage == by.After.Stage
		if !begun || by.Stage != "" && stage != by.Stage {
			continue
		}
		for _, place := range places {
			var last queue.Hash
			if stage == by.After.Stage {
				if place < by.After.place {
					continue
				}
				if place == by.After.place {
					last = by.After.name
				}
			}
			for more := sizes[i.records.incidentGroup(place, stage)] > 0; more && len(out) <= by.Limit; {
				var page []StoredIncident
				if page, last, more, err = i.page(ctx, place, stage, last, by.Limit+1-len(out)); err != nil {
					return nil, next, err
				}
				out = append(out, page...)
			}
		}
	}
	if len(out) > by.Limit {
		out = out[:by.Limit]
		x := out[by.Limit-1]
		next = IncidentCursor{x.Incident.Stage(), PlaceOfIncident(x.Incident), x.name}
	}
	slices.SortStableFunc(out, worseIncident)
	return out, next, nil
}

// worseIncident compares incidents: by their stages, failures before warnings, and those
// that are open for longer first.
func worseIncident(a, b StoredIncident) int {
	x, y := a.Incident, b.Incident
	return cmp.Or(cmp.Compare(slices.Index(rules.Stages, x.Stage()), slices.Index(rules.Stages, y.Stage())),
		cmp.Compare(slices.Index(rules.Types, y.Type), slices.Index(rules.Types, x.Type)), x.Opened.Compare(y.Opened))
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
