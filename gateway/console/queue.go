package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/bars"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// queuePage shows the waiting deliveries by destination.
type queuePage struct {
	*shared
	queue *queueActions
}

// maxPageDestinations is the maximum number of destinations on the page of the queue.
const maxPageDestinations = 200

// serveQueuePage shows the waiting deliveries by destination.
func (h *queuePage) serveQueuePage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	p := view.QueuePage{Root: api.RootOf(r.URL.Path), Size: "0 B"}
	p.Done = doneText(r.URL.Query())
	q, err := h.App.Open(nil)
	switch {
	case err != nil:
		p.Problem = httpapi.ErrQueueUnread
	case q == nil:
		p.Problem, p.Lacks = "There is no queue.", h.lacksQueue("What cannot be delivered at once waits and is tried again")
	default:
		p.Numbers = true
		h.setQueue(r, &p, q)
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleQueue, p)
}

// setQueue sets the page's data from the queue.
func (h *queuePage) setQueue(r *http.Request, p *view.QueuePage, q *gateway.Rooms) {
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	s, err := q.Outbox.Queue.Stats(ctx)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	p.Waiting, p.Sending, p.GivenUp, p.Oldest, p.Size = s.Queued, s.Sending, s.Dead, s.Oldest, humanize.IBytes(uint64(max(s.Bytes, 0)))
	if reason := h.App.Unavailable(ctx); reason != "" {
		p.Problem = "No message can be stored now: " + reason + "."
	}
	states, err := q.Outbox.Queue.Destinations.All(ctx)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	p.Waiting = 0
	for i := range states {
		p.Waiting += states[i].Waiting
	}
	p.Held = max(s.Queued-p.Waiting, 0)
	all, err := h.troubled(ctx, q)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	address := p.Root + httpapi.RouteConsoleQueue[1:]
	waiting := 0
	for _, d := range all {
		waiting += d.health.Waiting
	}
	if waiting > 0 {
		p.All = &view.Waits{Address: address, Destination: allDestinations, Count: waiting}
	}
	if waiting > 0 || s.Dead > 0 {
		p.Hurry = address
	}
	if p.More = max(len(all)-maxPageDestinations, 0); p.More > 0 {
		all = all[:maxPageDestinations]
	}
	of := h.bars(r, q)
	rows := make([]view.QueuedDestination, len(all))
	for i := range all {
		rows[i] = h.troubledRow(r, of, &all[i], address)
	}
	p.Troubled = view.ByState(rows)
}

// keyLinks returns links to the pages of keys.
func keyLinks(r *http.Request, names []string) []view.KeyLink {
	out := make([]view.KeyLink, len(names))
	for i, name := range names {
		out[i] = view.KeyLink{Name: name, Address: httpapi.ConsoleKey(r, name)}
	}
	return out
}

// siteDestination is a destination that messages to the site may have.
type siteDestination struct {
	id           queue.Hash
	counted      string // hash by which it is counted (see [tally.HashOf]); "" if unknown
	keys         []string
	tags         []string // in any of the keys
	service, url string
	health       view.Health
}

// add adds a key in which the destination has tags.
func (d *siteDestination) add(key string, tags []string) {
	if !slices.Contains(d.keys, key) {
		d.keys = append(d.keys, key)
	}
	for _, tag := range tags {
		if !slices.Contains(d.tags, tag) {
			d.tags = append(d.tags, tag)
		}
	}
}

// troubledRow returns a destination as pages list it, with links that silence it.
func (h *shared) troubledRow(r *http.Request, of *bars.Bars, d *siteDestination, address string) view.QueuedDestination {
	out, q := d.row(r, of, address), h.App.Rooms
	out.Silences = h.silencesOf(r, d.keys, func(k *site.Key, t notifier.Target) bool { return q.Outbox.DestinationID(t, k.Limits) == d.id })
	return out
}

// row returns the destination as pages list it. The button at the address also retries dead
// deliveries, so there is one in any case.
func (d *siteDestination) row(r *http.Request, of *bars.Bars, address string) view.QueuedDestination {
	name := named(d.service, d.url)
	return view.QueuedDestination{
		Named: name, URL: d.url, Tags: d.tags, Keys: keyLinks(r, d.keys), Health: d.health, Bar: of.OfHash(d.keys, d.counted, d.url),
		Waits: view.Waits{
			Address: address, Destination: EncodeDestination(d.id),
			Label: strings.TrimSpace(notifier.NameWithTags(name.Name, d.tags) + " " + strings.Join(d.keys, " ")), Count: d.health.Waiting,
		},
	}
}

// troubled returns the destinations of the site that have waiting deliveries or fail, the worst
// first. For saved keys, these are destinations of messages to these keys. Destinations of clients
// and of default_urls, which have no key, are included if they cannot belong to another site.
func (h *shared) troubled(ctx context.Context, q *gateway.Rooms) ([]siteDestination, error) {
	states, err := q.Outbox.Queue.Destinations.All(ctx)
	if err != nil {
		return nil, err
	}
	configured := map[queue.Hash]*siteDestination{}
	for _, name := range slices.Sorted(maps.Keys(h.Resolved.Keys)) {
		k := h.Resolved.Configured(name)
		for _, t := range k.Targets {
			id := q.Outbox.DestinationID(t, k.Limits)
			d := configured[id]
			if d == nil {
				d = &siteDestination{service: t.Service(), url: t.String(), counted: tally.HashOf(t)}
				configured[id] = d
			}
			d.add(name, t.Tags)
		}
	}
	saved, err := h.Saved.List(ctx)
	if err != nil {
		saved = nil // the page shows the rest
	}
	alone := len(h.App.Conf.Sites) == 1
	var out []siteDestination
	for i := range states {
		s := &states[i]
		health := consoleHealth(s)
		if health.State == view.Fine || health.State == view.Silent {
			continue
		}
		d := siteDestination{id: s.Destination, health: health}
		name := outbox.DecodeName(s.About)
		switch known := configured[s.Destination]; {
		case known != nil:
			d.keys, d.tags, d.service, d.url, d.counted = known.keys, known.tags, known.service, known.url, known.counted
		case slices.Contains(saved, name.Key) && h.reaches(ctx, q, name.Key, &d):
			d.service, d.url = name.Service, name.URL
		case alone && !slices.Contains(saved, name.Key):
			d.service, d.url = cmp.Or(name.Service, "A destination"), cmp.Or(name.URL, s.Host)
		default:
			continue
		}
		slices.Sort(d.keys)
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b siteDestination) int {
		switch {
		case a.health.State.Worse(b.health.State):
			return -1
		case b.health.State.Worse(a.health.State):
			return 1
		}
		return cmp.Or(cmp.Compare(b.health.Waiting, a.health.Waiting), strings.Compare(a.url, b.url))
	})
	return out, nil
}

// reaches reports whether a saved key of the site has a destination, and sets its key, its tags and
// the hash by which it is counted. Keys of other sites may have the same name.
func (h *shared) reaches(ctx context.Context, q *gateway.Rooms, name string, d *siteDestination) bool {
	k, err := h.Resolved.Key(ctx, name)
	if err != nil {
		return false
	}
	i := slices.IndexFunc(k.Targets, func(t notifier.Target) bool { return q.Outbox.DestinationID(t, k.Limits) == d.id })
	if i >= 0 {
		d.counted = tally.HashOf(k.Targets[i])
		d.add(name, k.Targets[i].Tags)
	}
	return i >= 0
}

// hurryQueue makes due the waiting and dead deliveries for one destination or for all of them, and
// redirects to the page of the button.
func (h *queuePage) hurryQueue(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	q, ids, err := h.queueForm(w, r)
	if err != nil {
		return err
	}
	one := r.PostForm.Get("destination")
	n, err := messagesOf(r, q).RetryDestinations(r.Context(), ids, func(ctx context.Context, j *queue.Job) bool {
		return (one == "" || one == allDestinations || slices.Contains(ids, q.Outbox.Queue.Hash(j.Destination))) && h.queue.mayChange(ctx, j)
	})
	if err != nil {
		return err
	}
	return h.queue.hurried(w, r, httpapi.AddressOf(r, at.Pattern), n)
}

// dropQueue drops the deliveries for one destination of the page, or for all of them.
func (h *queuePage) dropQueue(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	q, ids, err := h.queueForm(w, r)
	if err != nil {
		return err
	}
	if !r.PostForm.Has("destination") {
		return errNoQueuedDestination
	}
	total := 0
	for _, id := range ids {
		n, err := messagesOf(r, q).DropDestination(r.Context(), id, h.queue.mayChange)
		if err != nil {
			return err
		}
		total += n
	}
	return h.queue.changedDeliveries(w, r, httpapi.AddressOf(r, httpapi.RouteConsoleQueue)+"?done="+dropQuery, total)
}

// doneText returns a text about what a button has done, from the query of the page; "" for nothing.
func doneText(query url.Values) string {
	switch query.Get("done") {
	case hurryQuery:
		waiting, err := strconv.Atoi(query.Get("waiting"))
		dead, err2 := strconv.Atoi(query.Get("dead"))
		if err != nil || err2 != nil || waiting < 0 || dead < 0 {
			return ""
		}
		return hurriedText(waiting, dead)
	case dropQuery:
		return "What waited there is dropped."
	}
	return ""
}

// hurriedText returns a text about the number of deliveries that are tried now: waiting and dead
// ones.
func hurriedText(waiting, dead int) string {
	switch {
	case waiting+dead == 0:
		return "Nothing waits there, and nothing was given up."
	case dead == 0:
		return view.Count(waiting, "delivery that waited is", "deliveries that waited are") + " being tried now."
	case waiting == 0:
		return view.Count(dead, "delivery that was given up is", "deliveries that were given up are") + " being tried now."
	}
	return fmt.Sprintf("%d that waited and %d that were given up are being tried now.", waiting, dead)
}

// queueForm reads the form of a button of the page. It returns the destination in the form, which
// may have no waiting deliveries, or all destinations that have some.
func (h *queuePage) queueForm(w http.ResponseWriter, r *http.Request) (q *gateway.Rooms, ids []queue.Hash, err error) {
	if err := h.readPageForm(w, r); err != nil {
		return nil, nil, err
	}
	if q, err = h.App.Open(nil); err == nil && q == nil {
		err = errNoQueuedDestination
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	all, err := h.troubled(ctx, q)
	if err != nil {
		return nil, nil, outbox.Unread(err)
	}
	wanted := r.PostForm.Get("destination")
	for _, d := range all {
		if (wanted == "" || wanted == allDestinations) && d.health.Waiting > 0 || wanted == EncodeDestination(d.id) {
			ids = append(ids, d.id)
		}
	}
	if wanted != "" && wanted != allDestinations && len(ids) == 0 {
		err = errNoQueuedDestination
	}
	return q, ids, err
}
