package caddyhttp

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentQuery selects a part of the incidents of some keys.
type incidentQuery struct {
	key   string                 // "" for all
	stage notifier.IncidentState // "" for all
	after incidentCursor
	limit int
}

// incidentCursor is a position in the list of incidents. The zero value is its beginning.
type incidentCursor struct {
	stage notifier.IncidentState
	place string // of the key (see [delivery.Place])
	name  queue.Hash
}

// encode returns the cursor as a parameter of an address.
func (c incidentCursor) encode() string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(c.name[:]) + string(c.stage) + "\x00" + c.place))
}

// decodeCursor is the inverse of encode. It reports whether the text is well-formed.
func decodeCursor(text string) (c incidentCursor, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < len(c.name) {
		return c, false
	}
	rest := string(b[copy(c.name[:], b):])
	stage, place, ok := strings.Cut(rest, "\x00")
	c.stage, c.place = notifier.IncidentState(stage), place
	return c, ok && slices.Contains(rules.Stages, c.stage)
}

// The number of incidents on a page.
const (
	defaultIncidents = 100
	maxIncidents     = 1000
)

// parseIncidentQuery reads the parameters key, state, after and limit.
func parseIncidentQuery(v url.Values) (q incidentQuery, err error) {
	q = incidentQuery{key: v.Get("key"), stage: notifier.IncidentState(v.Get("state")), limit: defaultIncidents}
	if q.stage != "" && !slices.Contains(rules.Stages, q.stage) {
		return q, api.Errorf(http.StatusBadRequest, "state must be open, acknowledged or resolved")
	}
	if text := v.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > maxIncidents {
			return q, api.Errorf(http.StatusBadRequest, "limit must be a number from 1 to %d", maxIncidents)
		}
	}
	if text := v.Get("after"); text != "" {
		var ok bool
		if q.after, ok = decodeCursor(text); !ok {
			return q, api.Errorf(http.StatusBadRequest, "after is malformed; use the address that the field next has")
		}
	}
	return q, nil
}

// address returns the address of the page after a cursor.
func (q *incidentQuery) address(path string, after incidentCursor) string {
	v := url.Values{}
	for name, value := range map[string]string{"key": q.key, "state": string(q.stage)} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.limit != defaultIncidents {
		v.Set("limit", strconv.Itoa(q.limit))
	}
	if after != (incidentCursor{}) {
		v.Set("after", after.encode())
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// listIncidents returns the incidents of the keys with these places, the worst stage
// first, and the cursor of the next page, or the zero value if no more follow.
func (q *alerts) listIncidents(ctx context.Context, places []string, by *incidentQuery) (out []storedIncident, next incidentCursor, err error) {
	sizes, err := q.CallersGroupSizes(ctx)
	if err != nil {
		return nil, next, err
	}
	places = slices.Compact(slices.Sorted(slices.Values(places)))
	begun := by.after == incidentCursor{}
	for _, stage := range rules.Stages {
		begun = begun || stage == by.after.stage
		if !begun || by.stage != "" && stage != by.stage {
			continue
		}
		for _, place := range places {
			var last queue.Hash
			if stage == by.after.stage {
				if place < by.after.place {
					continue
				}
				if place == by.after.place {
					last = by.after.name
				}
			}
			for more := sizes[q.incidentGroup(place, stage)] > 0; more && len(out) <= by.limit; {
				var page []storedIncident
				if page, last, more, err = q.incidents(ctx, place, stage, last, by.limit+1-len(out)); err != nil {
					return nil, next, err
				}
				out = append(out, page...)
			}
		}
	}
	if len(out) > by.limit {
		out = out[:by.limit]
		x := out[by.limit-1]
		next = incidentCursor{x.Stage(), placeOfIncident(x.Incident), x.name}
	}
	slices.SortStableFunc(out, worseIncident)
	return out, next, nil
}

// worseIncident compares incidents: by their stages, failures before warnings, and those
// that are open for longer first.
func worseIncident(a, b storedIncident) int {
	rank := func(x storedIncident) int { return slices.Index(rules.Stages, x.Stage()) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)),
		cmp.Compare(slices.Index(rules.Types, b.Type), slices.Index(rules.Types, a.Type)), a.Opened.Compare(b.Opened))
}

// resolvedIncidentPlaces adds the places of keys of a site, or of the key with a name. If the saved
// keys cannot be listed, it adds the others and returns an error.
func resolvedIncidentPlaces(r *site.Site, ctx context.Context, siteID, only string, places []string) ([]string, error) {
	for name, k := range r.Keys {
		if only == "" || name == only {
			places = append(places, k.Home(siteID)+"\x00"+name)
		}
	}
	if !r.Saved.On() || r.Saved.Rules.Empty() {
		return places, nil
	}
	names := []string{only}
	if only == "" {
		var err error
		if names, err = r.Saved.Names(ctx); err != nil {
			return places, saved.ErrSavedUnavailable(err)
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

// directoryIncidentPlaces returns the places of all keys, or of those with a name.
func directoryIncidentPlaces(a *site.Directory, ctx context.Context, key string) ([]string, error) {
	places, err := resolvedIncidentPlaces(a.Resolved, ctx, "", key, nil)
	for _, r := range a.Sites {
		if err == nil {
			places, err = resolvedIncidentPlaces(r, ctx, a.SiteOf(r), key, places)
		}
	}
	return places, err
}

// incidentJSON is an incident as clients see it: without the texts of its messages.
type incidentJSON struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	State string `json:"state"` // open, acknowledged or resolved
	Type  string `json:"type"`
	Title string `json:"title"`

	Incident string   `json:"incident,omitempty"` // the field of its messages
	Source   string   `json:"source"`             // of the message that opened it
	Tags     []string `json:"tags"`               // of the destinations

	Opened     time.Time  `json:"opened"`
	Changed    time.Time  `json:"changed"` // its last message
	Resolved   *time.Time `json:"resolved,omitempty"`
	ResolvedBy string     `json:"resolved_by,omitempty"` // who did so, if no message did

	Acknowledged *acknowledgementJSON `json:"acknowledged,omitempty"`
	Escalation   *escalationJSON      `json:"escalation,omitempty"`
	Begun        []begunStepJSON      `json:"begun,omitempty"` // steps, the latest last
}

type acknowledgementJSON struct {
	By    string     `json:"by"`
	At    time.Time  `json:"at"`
	Until *time.Time `json:"until,omitempty"` // when the escalation begins again
}

type escalationJSON struct {
	Step      int        `json:"step"`  // that was begun last
	Steps     []int      `json:"steps"` // the numbers of all
	Round     int        `json:"round"`
	Next      *time.Time `json:"next,omitempty"` // when the next step begins
	Exhausted bool       `json:"exhausted"`      // all rounds have ended
}

type begunStepJSON struct {
	Round   int       `json:"round"`
	Step    int       `json:"step"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // sending, told, failed or silenced
}

// newIncidentJSON returns an incident as clients see it.
func newIncidentJSON(x *rules.Incident) incidentJSON {
	out := incidentJSON{
		ID: x.ID, Key: x.Key, State: string(x.Stage()), Type: string(x.Type), Title: x.Title, Incident: x.Name, Source: x.Source,
		Tags: append([]string{}, x.Tags...), Opened: x.Opened, Changed: x.Changed, Resolved: site.TimeOrNil(x.Resolved), ResolvedBy: x.ResolvedBy,
	}
	if a := x.Acknowledged; x.IsAcknowledged() {
		out.Acknowledged = &acknowledgementJSON{a.By, a.At, site.TimeOrNil(a.Until)}
	}
	if e := &x.Escalation; e.Round > 0 {
		out.Escalation = &escalationJSON{e.Step, incidentSteps(x), e.Round, site.TimeOrNil(e.Next), e.Exhausted}
	}
	for _, s := range x.Begun {
		out.Begun = append(out.Begun, begunStepJSON{s.Round, s.Step, s.At, cmp.Or(string(s.Outcome), "sending")})
	}
	return out
}

// incidentSteps returns the numbers of the steps of an incident.
func incidentSteps(x *rules.Incident) []int {
	return append([]int{}, x.Escalation.Steps()...)
}

// incidentsJSON is a page of incidents.
type incidentsJSON struct {
	Incidents []incidentJSON `json:"incidents"`
	Next      string         `json:"next,omitempty"` // address of the next page
}

// newIncidentsJSON returns a page of incidents whose address has the path.
func newIncidentsJSON(list []storedIncident, path string, by *incidentQuery, next incidentCursor) incidentsJSON {
	out := incidentsJSON{Incidents: make([]incidentJSON, len(list))}
	for i, x := range list {
		out.Incidents[i] = newIncidentJSON(x.Incident)
	}
	if next != (incidentCursor{}) {
		out.Next = by.address(path, next)
	}
	return out
}

// siteIncidents returns a page of the incidents of the keys that the site has.
func (h *httpAPI) siteIncidents(ctx context.Context, by *incidentQuery) ([]storedIncident, incidentCursor, error) {
	q, err := h.app.open(nil)
	if err != nil || q == nil {
		return nil, incidentCursor{}, cmp.Or(err, error(errNoIncidents))
	}
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	places, err := resolvedIncidentPlaces(h.resolved, ctx, h.site(), by.key, nil)
	if err != nil {
		return nil, incidentCursor{}, err
	}
	list, next, err := q.listIncidents(ctx, places, by)
	if err != nil {
		err = outbox.MessageError(fmt.Errorf("listing incidents: %w", err))
	}
	return list, next, err
}

// errNoIncidents is returned without a queue.
var errNoIncidents = api.Errorf(http.StatusNotFound, "there are no incidents, because there is no queue; add queue to the global option notify, and rules to a key")
