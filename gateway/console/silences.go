package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silencePages lists, makes and ends the silences of keys.
type silencePages struct {
	*shared
	messages *messagePages
}

// The query parameters of the forms on the page of silences.
const (
	makeQuery   = "make"
	extendQuery = "extend"
	endQuery    = "end"
)

// serveSilencesPage lists the silences of the keys of the site.
func (h *silencePages) serveSilencesPage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	query := r.URL.Query()
	p := view.SilencesPage{Root: api.RootOf(r.URL.Path), User: environment.User(r)}
	switch query.Get("done") {
	case makeQuery:
		p.Done = "The silence is made."
	case extendQuery:
		p.Done = "The silence lasts longer."
	case endQuery:
		p.Done = "The silence has ended. What is still open is told."
	}
	q, err := h.App.Open(nil)
	switch {
	case err != nil:
		p.Problem = httpapi.ErrQueueUnread
	case q == nil:
		p.Problem, p.Lacks = "There is no queue, and silences need one.", h.lacksQueue("Silences are possible")
	default:
		p.Action = silencesPage(r)
		p.New = view.SilenceForm{Key: query.Get("key"), Title: query.Get("title"), Incident: query.Get("incident"), Tag: query.Get("tag")}
		p.Offer = h.offer(r, &p.New, q)
		p.Lengths, p.Longer = httpapi.SilenceLengths(), silenceEnds(q.Outbox.Queue.Now(), "")
		h.setSilences(r, &p, q)
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleSilences, p)
}

// silencesPage returns the address of the page of silences, relative to a request.
func silencesPage(r *http.Request) string {
	return httpapi.AddressOf(r, httpapi.RouteConsoleSilences)
}

// silenceAddress returns the address of the page for silencing the destinations of a key with a tag.
func silenceAddress(r *http.Request, key, tag string) string {
	return httpapi.SilenceAddress(r, url.Values{"key": {key}, "tag": {tag}})
}

// setSilences sets the silences on the page, in order of their ends.
func (h *silencePages) setSilences(r *http.Request, p *view.SilencesPage, q *gateway.Rooms) {
	names, err := h.keyNames(r.Context())
	if err != nil {
		p.Problem = "The saved keys cannot be read at the moment."
		return
	}
	if len(names) <= MaxListedKeys {
		p.Keys = names
	}
	places, err := h.placesOf(r.Context(), names)
	if err != nil {
		p.Problem = "The saved keys cannot be read at the moment."
		return
	}
	now := q.Outbox.Queue.Now()
	for _, name := range names {
		place, windows := places[name], h.silenceWindows(name, len(names))
		if place == "" || len(windows) == 0 && !q.Alerts.Silences.Has(place) {
			continue
		}
		all, err := q.Alerts.Silences.List(r.Context(), place, windows)
		if err != nil {
			p.Problem = httpapi.ErrQueueUnread
			return
		}
		for _, s := range all {
			listed := view.ListedSilence{
				ID: s.ID.String(), Key: name, KeyAddress: httpapi.ConsoleKey(r, name), Until: s.Until, Incident: s.Incident, Tag: s.Tag, Title: s.Title,
				Reason: s.Reason, Who: s.Who, Messages: s.Count,
				Configured: s.Window != uuid.UUID{}, Told: s.Tell, ToEnd: s.UntilResolved,
			}
			if s.Planned(now) {
				listed.From = s.From
			}
			p.Silences = append(p.Silences, listed)
		}
	}
	slices.SortStableFunc(p.Silences, func(a, b view.ListedSilence) int {
		return cmp.Or(a.From.Compare(b.From), a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID))
	})
}

// silenceWindows returns the configured silences of a key. If the site has more keys than a page
// lists, saved keys, whose windows are all the same, have none.
func (h *silencePages) silenceWindows(name string, keys int) []rules.SilenceWindow {
	k := h.Resolved.Keys[name]
	if k == nil && keys <= MaxListedKeys {
		return h.Resolved.Saved.Rules.SilenceWindows()
	}
	return k.SilenceWindows()
}

// placesOf returns the places of keys of the site (see [dispatch.Delivery.Place]). Keys that do not
// exist are missing.
func (h *silencePages) placesOf(ctx context.Context, names []string) (map[string]string, error) {
	var saved []string
	for _, name := range names {
		if h.Resolved.Keys[name] == nil {
			saved = append(saved, name)
		}
	}
	places, err := map[string]string{}, error(nil)
	if h.Resolved.Saved.On() {
		places, err = h.Resolved.Saved.Places(ctx, saved)
	}
	for _, name := range names {
		if k := h.Resolved.Keys[name]; k != nil {
			places[name] = k.Place(h.Site()).String()
		}
	}
	return places, err
}

// postSilence makes the silence in the form of the page.
func (h *silencePages) postSilence(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	k, silences, err := h.api.Silences.Of(r.Context(), r.PostForm.Get("key"))
	var x silence.Request
	if err == nil {
		x, err = silence.OfForm(r.PostForm.Get)
	}
	if err == nil {
		x.From = zoned(x.From)
		_, err = h.api.Silences.MakeSilence(r, silences, k, x)
	}
	if err != nil {
		return err
	}
	return httpapi.SeeOther(w, silencesPage(r), "done="+makeQuery)
}

// zoned adds the server's zone to a time in the format of a browser's field. Any other text stays.
func zoned(text string) string {
	at, err := time.ParseInLocation("2006-01-02T15:04", text, time.Local) //nolint:gosmopolitan // its users live in the server's zone
	if err != nil {
		return text
	}
	return at.Format(time.RFC3339)
}

// postSilenceLonger lets a silence of the page last longer.
func (h *silencePages) postSilenceLonger(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	k, silences, err := h.api.Silences.Of(r.Context(), r.PostForm.Get("key"))
	if err == nil {
		longer := silence.Request{For: r.PostForm.Get("for"), Until: r.PostForm.Get("until")}
		_, err = h.api.Silences.ExtendSilence(r, silences, k, r.PostForm.Get("id"), longer)
	}
	if err != nil {
		return err
	}
	return httpapi.SeeOther(w, silencesPage(r), "done="+extendQuery)
}

// postSilenceEnd ends a silence of the page.
func (h *silencePages) postSilenceEnd(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	k, silences, err := h.api.Silences.Of(r.Context(), r.PostForm.Get("key"))
	if err == nil {
		_, err = h.api.Silences.EndSilence(r, silences, k, r.PostForm.Get("id"))
	}
	if err != nil {
		return err
	}
	return httpapi.SeeOther(w, silencesPage(r), "done="+endQuery)
}

// setSilence sets the addresses at which the key, and its destinations, are silenced.
func (h *keyPages) setSilence(r *http.Request, p *view.KeyPage, k *site.Key) {
	if !h.maySilence(r, k) {
		return
	}
	p.Silence = silenceAddress(r, k.Name, rules.AllTags)
	for i := range p.Destinations {
		p.Destinations[i].Silence = h.silenceOf(r, k, k.Targets[i])
	}
}

// maySilence reports whether the client of r can silence a key on a page.
func (h *shared) maySilence(r *http.Request, k *site.Key) bool {
	return h.Has.Queue && !k.Unqueued && h.MayManage(r) == nil && h.Has.Console
}

// silenceOf returns the link to the page that silences a destination of a key, by a tag of its own or,
// if it has none, together with others. It returns the zero value if no tag tells it from the others.
func (h *shared) silenceOf(r *http.Request, k *site.Key, t notifier.Target) (out view.SilenceLink) {
	tag, shared := ownTag(k, t)
	if tag == "" && len(k.Targets) == 1 {
		tag, shared = rules.AllTags, 1
	}
	if tag == "" || !h.maySilence(r, k) {
		return out
	}
	out = view.SilenceLink{Address: silenceAddress(r, k.Name, tag), Text: "Silence", Label: "Silence " + t.Destination.Name()}
	if shared > 1 {
		out.Text = fmt.Sprintf("Silence %d with %s", shared, tag)
		out.Label = out.Text + ", all destinations with the tag" // begins with what is seen (WCAG 2.5.3)
	}
	return out
}

// silencesOf returns the links that silence a destination in each of some keys. is reports whether a
// target of a key is the destination.
func (h *shared) silencesOf(r *http.Request, keys []string, is func(*site.Key, notifier.Target) bool) (out []view.SilenceLink) {
	for _, name := range keys {
		k, err := h.Resolved.Key(r.Context(), name)
		if err != nil {
			continue // the page of the key says why
		}
		i := slices.IndexFunc(k.Targets, func(t notifier.Target) bool { return is(k, t) })
		if i < 0 {
			continue
		}
		x := h.silenceOf(r, k, k.Targets[i])
		if x.Address == "" {
			continue
		}
		if len(keys) > 1 {
			x.Text, x.Label = x.Text+" in "+name, x.Label+" in "+name
		}
		out = append(out, x)
	}
	return out
}

// ownTag returns the rarest tag of a destination of a key, and how many destinations have it; ""
// for a destination without tags.
func ownTag(k *site.Key, t notifier.Target) (tag string, shared int) {
	for _, own := range t.Tags {
		_, name := notifier.SplitTag(own)
		if n := len(taggedTargets(k, name)); tag == "" || n < shared {
			tag, shared = name, n
		}
	}
	return tag, shared
}

// taggedTargets returns the destinations of a key that a silence with a tag affects.
func taggedTargets(k *site.Key, tag string) (out []notifier.Target) {
	s := rules.Silence{Tag: tag}
	for _, t := range k.Targets {
		if s.Concerns(t.Tags) {
			out = append(out, t)
		}
	}
	return out
}
