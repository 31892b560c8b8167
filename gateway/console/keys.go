package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/beats"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// keysPage lists the keys of the site.
type keysPage struct{ *shared }

// Limits of the list of keys.
const (
	MaxListedKeys = 50 // per page
	maxListReads  = 8  // saved keys read at once
)

// serveKeysPage lists the keys of the configuration and the saved keys, the worst first. One of its
// forms opens the page of a key.
func (h *keysPage) serveKeysPage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	query := r.URL.Query()
	if key := query.Get("key"); key != "" {
		if err := site.CheckKeyName(key); err != nil {
			return api.Errorf(http.StatusBadRequest, "%w", err)
		}
		return httpapi.SeeOther(w, httpapi.ConsoleKey(r, key), "")
	}
	names, err := h.keyNames(r.Context())
	if err != nil {
		return err
	}
	states, err := h.health(r.Context())
	p := view.KeysPage{
		Root: api.RootOf(r.URL.Path), Search: strings.TrimSpace(query.Get("search")), State: view.State(query.Get("state")), All: len(names),
		MayAdd: h.MayManageSaved(r) == nil,
	}
	p.Lacks = h.lacksKeys(p.MayAdd)
	switch {
	case err != nil:
		p.Problem = httpapi.ErrQueueUnread
	case states.q == nil:
		p.Hint = "Health is what the last messages since the start of the gateway tell."
	}
	if states.q != nil {
		p.Watchdog = beats.WatchdogTrouble(r.Context(), states.q.Beats)
	}
	rough := h.roughStates(states, names)
	h.setTallies(&p, rough)
	names = selectKeys(names, rough, &p)
	p.Found = len(names)
	pages := (len(names) + MaxListedKeys - 1) / MaxListedKeys
	n, err := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	if err != nil || n < 1 || n > max(pages, 1) {
		return api.Errorf(http.StatusNotFound, "there is no such page; the last one is %d", max(pages, 1))
	}
	address := func(n int) string {
		if n < 1 || n > pages {
			return ""
		}
		v := url.Values{"page": {strconv.Itoa(n)}}
		if p.Search != "" {
			v.Set("search", p.Search)
		}
		if p.State != "" {
			v.Set("state", string(p.State))
		}
		return p.Root + httpapi.RouteConsoleKeys[1:] + "?" + v.Encode()
	}
	p.Previous, p.Next = address(n-1), address(n+1)
	begin := (n - 1) * MaxListedKeys
	end := min(begin+MaxListedKeys, len(names))
	p.First, p.Last = begin+1, end
	p.Keys = h.listKeys(r, states, names[begin:end])
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// selectKeys returns the names that a page lists, the worst states first.
func selectKeys(names []string, states map[string]view.State, p *view.KeysPage) []string {
	if p.Search != "" {
		text := strings.ToLower(p.Search)
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(strings.ToLower(name), text) })
	}
	if p.State != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return states[name] != p.State })
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch x, y := states[a], states[b]; {
		case x.Worse(y):
			return -1
		case y.Worse(x):
			return 1
		}
		return 0
	})
	return names
}

// keyNames returns the names of all keys of the site, sorted.
func (h *shared) keyNames(ctx context.Context) ([]string, error) {
	saved, err := h.Saved.List(ctx)
	if err != nil {
		return nil, err
	}
	names := append(slices.Collect(maps.Keys(h.Resolved.Keys)), saved...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// roughStates returns the states of keys without reading saved ones. The state of a saved key
// follows from the destinations that messages to this name went to last.
func (h *shared) roughStates(states *healthView, names []string) map[string]view.State {
	siteID, saved := h.Site(), map[string]*view.Health{}
	for i := range states.states {
		if name := outbox.DecodeName(states.states[i].About).Key; name != "" {
			if saved[name] == nil {
				saved[name] = &view.Health{}
			}
			if d := consoleHealth(&states.states[i]); d.State != view.Silent {
				addHealth(saved[name], d, "")
			}
		}
	}
	out := make(map[string]view.State, len(names))
	for _, name := range names {
		switch k := h.Resolved.Keys[name]; {
		case k != nil:
			out[name] = states.ofKey(site.KeyID{Site: siteID, Key: name}, k).State
		case saved[name] != nil && saved[name].State != "":
			out[name] = saved[name].State
		default:
			sum := view.Health{State: view.Silent}
			states.remember(site.KeyID{Site: siteID, Key: name}, &sum)
			for _, last := range states.last[site.KeyID{Site: siteID, Key: name}] {
				if last.cause != "" {
					sum.State = view.Failing
				} else if sum.State == view.Silent {
					sum.State = view.Fine
				}
			}
			out[name] = sum.State
		}
	}
	return out
}

// setTallies sets the number of keys in each state.
func (h *keysPage) setTallies(p *view.KeysPage, states map[string]view.State) {
	if len(states) < 2 {
		return
	}
	count := map[view.State]int{}
	for _, s := range states {
		count[s]++
	}
	for _, s := range view.States {
		if count[s] == 0 {
			continue
		}
		t := view.Tally{State: s, Count: count[s]}
		if s != p.State {
			t.Address = p.Root + httpapi.RouteConsoleKeys[1:] + "?state=" + string(s)
		}
		p.Tallies = append(p.Tallies, t)
	}
}

// listKeys describes keys. It reads unused saved keys without keeping them in memory.
func (h *keysPage) listKeys(r *http.Request, states *healthView, names []string) []view.ListedKey {
	out := make([]view.ListedKey, len(names))
	slots := make(chan struct{}, maxListReads)
	var wg sync.WaitGroup
	siteID, now := h.Site(), time.Now()
	of := h.bars(r, states.q)
	for i, name := range names {
		l := &out[i]
		*l = view.ListedKey{Name: name, Address: httpapi.ConsoleKey(r, name), Send: httpapi.ConsoleKey(r, name) + "?" + sendQuery}
		set := func(k *site.Key) {
			health := states.ofKey(site.KeyID{Site: siteID, Key: name}, k)
			l.URLs, l.Services, l.Health = len(k.Targets), namesOf(k.Targets), &health
			l.Bar = of.OfKey(name)
			l.Last = lastDelivered(&health, states.q != nil, now)
			if health.Waiting > 0 {
				l.Hurry = l.Address
			}
		}
		if k := h.Resolved.Configured(name); k != nil {
			l.Fixed = true
			set(k)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			l.Problem = h.Saved.Describe(r.Context(), name, set)
		})
	}
	wg.Wait()
	return out
}

// lastDelivered returns when a key last delivered a message. Only a queue remembers deliveries from
// before the start of the gateway.
func lastDelivered(health *view.Health, stored bool, now time.Time) view.Moment {
	switch {
	case !health.Delivered.IsZero():
		return view.NewMoment(health.Delivered, now)
	case !stored:
		return view.Moment{Text: "nothing since the start"}
	case health.State != view.Silent:
		return view.Moment{Text: "nothing delivered"}
	}
	return view.Moment{Text: "never used"}
}
