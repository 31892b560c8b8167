package console

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/beats"
	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/console/settings"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// keyPages writes the page of a key.
type keyPages struct {
	*shared
	builder  *builder
	messages *messagePages
}

// serveKeyPage writes the page of a key, even of one that does not exist.
func (h *keyPages) serveKeyPage(w http.ResponseWriter, r *http.Request, name string) error {
	if !api.PrefersHTML(r) {
		return httpapi.ErrKeyPage
	}
	if err := site.CheckKeyName(name); err != nil {
		return api.Errorf(http.StatusNotFound, "%w", err)
	}
	if r.URL.Query().Has(buildQuery) {
		return h.builder.serveBuilder(w, r, name)
	}
	return h.writeKeyPage(w, r, name, http.StatusOK, nil)
}

// tabQuery is the query parameter with the tab of a key's page in the console.
const tabQuery = "tab"

// shownTab returns the tab of a key that a request asks for.
func shownTab(r *http.Request) view.KeyTab {
	t := view.KeyTab(r.URL.Query().Get(tabQuery))
	if slices.Contains([]view.KeyTab{view.TabMessages, view.TabDevices, view.TabSettings}, t) {
		return t
	}
	return view.TabState
}

// show chooses the tab of a page.
func show(p *view.KeyPage, t view.KeyTab) {
	p.Tab, p.Tabs = t, nil
	for _, x := range view.KeyTabs {
		address := p.Address + "?" + tabQuery + "=" + string(x.Tab)
		switch {
		case !p.Has(x.Tab) && x.Tab != t:
			continue
		case x.Tab == view.TabState:
			address = p.Address
		case x.Tab == view.TabSend:
			address = p.Address + "?" + sendQuery
		}
		p.Tabs = append(p.Tabs, view.Tab{Name: x.Name, Address: address, Here: x.Tab == t})
	}
}

// addedService returns the service of a destination that was just saved, or "".
func addedService(r *http.Request) string {
	if s := notifier.FindService(r.URL.Query().Get(addedQuery)); s != nil && r.Method != http.MethodPost {
		return s.Name
	}
	return ""
}

// writeKeyPage writes the page of a key. d is an unsaved configuration, or nil.
func (h *keyPages) writeKeyPage(w http.ResponseWriter, r *http.Request, name string, status int, d *httpapi.Draft) error {
	p, err := h.keyPage(r, name)
	if d != nil {
		setDraft(&p, d)
		show(&p, view.TabSettings)
	} else if err != nil {
		return err
	}
	return h.WritePage(w, r, status, httpapi.RouteConsoleKeys, p)
}

// keyPage returns the page of a key, even of one that does not exist, with the tab that r asks for.
// If the storage cannot be read, the page does not show the saved configuration.
func (h *keyPages) keyPage(r *http.Request, name string) (p view.KeyPage, err error) {
	p, err = h.allOf(r, name)
	show(&p, shownTab(r))
	return p, err
}

// allOf returns the page with everything about a key.
func (h *keyPages) allOf(r *http.Request, name string) (p view.KeyPage, err error) {
	p = view.KeyPage{
		Root: api.RootOf(r.URL.Path), Key: name, Address: httpapi.ConsoleKey(r, name), Fixed: h.Resolved.Keys[name] != nil,
	}
	if p.Editable = !p.Fixed && h.MayManageSaved(r) == nil; p.Editable {
		c, err := h.Saved.Get(r.Context(), name)
		switch {
		case err == nil:
			p.Saved, p.Text, p.Format = true, c.Text, c.Format
		case !errors.Is(err, site.ErrNoKey):
			return p, err
		}
	}
	p.Added, p.Done = addedService(r), doneText(r.URL.Query())
	key := h.Lookup(name)
	k, err := key.Key(r.Context())
	switch {
	case err == nil:
		p.Saved = p.Saved || k.Saved
		h.setRecent(r, &p, key)
		h.setDestinations(r, &p, k)
		p.Tokens, p.Rules = len(k.Tokens), k.Rules.Describe()
		if p.Fixed {
			p.Facts = settings.Of(k, h.Has.Queue && !k.Unqueued)
		}
		p.Beats, p.BeatLine = beats.Pages{API: h.api}.OfKey(r, k)
		h.setSilence(r, &p, k)
		h.setOpen(r, &p, k)
		h.setDevices(r, &p, k)
		h.setInbox(r, &p, key, k)
		p.Login = h.NeedsLogin(r, k)
		p.Lines = sending.Lines(r, k, p.Login)
		if h.Resolved.Saved.On() {
			p.Lines = append(p.Lines, sending.MobileLine(r, h.Resolved.PublicURL, k)) // the app asks /status and /json/urls
		}
	case p.Saved:
		p.Problem = "The saved configuration cannot be used; the log of the gateway has the reason."
		h.setRecent(r, &p, nil)
	case !p.Editable:
		return p, err
	}
	return p, nil
}

// writeNewToken writes the page of a key with its new token.
func (h *keyPages) writeNewToken(w http.ResponseWriter, r *http.Request, name, token string, count int) error {
	p, err := h.keyPage(r, name)
	if err != nil {
		return err
	}
	p.NewToken, p.Tokens = token, count
	show(&p, view.TabSettings)
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// setDestinations sets the destinations of a key with their health.
func (h *keyPages) setDestinations(r *http.Request, p *view.KeyPage, k *site.Key) {
	p.Destinations = pageDestinations(p.Address, k.Targets)
	states, err := h.health(r.Context())
	if err != nil {
		return // the queue's part of the page says that it cannot be read
	}
	id, of := site.KeyID{Site: h.Site(), Key: k.Name}, h.bars(r, states.q)
	for i, t := range k.Targets {
		health := states.of(id, t, k.Limits)
		d := &p.Destinations[i]
		d.Health, d.Bar = &health, of.OfTarget(k.Name, t)
		if p.Waiting += health.Waiting; health.Waiting > 0 && states.q != nil {
			hash := states.q.Outbox.DestinationID(t, k.Limits)
			d.Waits = &view.Waits{Address: p.Address, Destination: EncodeDestination(hash), Label: t.Name(), Count: health.Waiting}
		}
	}
	sum := states.ofKey(id, k)
	p.Health = &sum
	if states.q != nil {
		p.Watchdog = beats.WatchdogTrouble(r.Context(), states.q.Beats)
	}
}

// EncodeDestination returns the ID of a destination in forms and the admin API.
func EncodeDestination(id queue.Hash) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// setDraft shows an unsaved configuration.
func setDraft(p *view.KeyPage, d *httpapi.Draft) {
	p.Text, p.Format = d.Text, d.Format
	p.Draft = &view.Draft{Problem: d.Problem, URLs: d.Urls, Mistakes: pageMistakes(d.Mistakes), Warnings: pageMistakes(d.Warnings)}
}

func pageMistakes(mistakes []saved.LineError) (out []view.Mistake) {
	for _, m := range mistakes {
		out = append(out, view.Mistake{Line: m.Line, Text: m.Text()})
	}
	return out
}
