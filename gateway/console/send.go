package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/inline"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// sendPages writes the pages for senders to a key: the page to send from, the preview of a message,
// and the page on which a device subscribes.
type sendPages struct {
	*shared
	page *keyPages
}

// errOnlyPage is returned to a program that reads the address that messages are sent to.
var errOnlyPage = api.Errorf(http.StatusNotAcceptable,
	"there is only a page for browsers to read here; send messages with POST, or write Accept: text/html for the page")

// servePage writes the page with a form for messages, or returns the response to a request that is
// not a browser's GET. The page shows services and tags, but nothing of URLs.
func (h *sendPages) servePage(w http.ResponseWriter, r *http.Request, to *httpapi.Lookup) *api.Response {
	name := to.Name
	if !h.Resolved.Page {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use POST", r.Method).Response()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, POST")
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; messages are sent with POST", r.Method).Response()
	}
	if !api.PrefersHTML(r) {
		return errOnlyPage.Response()
	}
	if name == "" && !h.Resolved.Stateless {
		return h.serveAbout(w, r)
	}
	if h.isDevicePage(r, name) {
		return h.serveDevicePage(w, r, to)
	}
	return h.writeSendPage(w, r, to, "", view.SendPage{
		Address: httpapi.FormAddress(r), Messages: httpapi.RelativeMessages(r, name),
		Device: httpapi.RelativeAddress(r),
	})
}

// sendQuery is the query parameter of a key's page in the console for sending to the key. Managers
// need no token there.
const sendQuery = "send"

// serveManaged answers a request to that page: it writes the page, or sends or previews the message
// written there.
func (h *sendPages) serveManaged(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	h.api.WriteResponse(w, r, at, h.managed(w, r, at))
	return nil
}

func (h *sendPages) managed(w http.ResponseWriter, r *http.Request, at *httpapi.Route) *api.Response {
	address := httpapi.RelativeAddress(r) + "?" + sendQuery
	switch {
	case !httpapi.IsChange(r):
		root := api.RootOf(r.URL.Path)
		at.Lookup().ToManager()
		p := view.SendPage{Address: address, Messages: root + "notify/messages/", Device: root + "notify/" + at.Key}
		if key, err := h.page.keyPage(r, at.Key); err == nil {
			show(&key, view.TabSend)
			p.Tabs, p.Keys, p.Lines, p.Tokens, p.Login = key.Tabs, root+httpapi.RouteConsoleKeys[1:], key.Lines, key.Tokens, key.Login
		}
		return h.writeSendPage(w, r, at.Lookup(), httpapi.RouteConsoleKeys, p)
	case r.URL.Query().Has("preview"):
		at.Lookup().ToManager()
		return h.servePreview(w, r, at.Lookup())
	}
	resp := h.api.SendManaged(w, r, at)
	resp.FormURL, resp.BackURL = "", address
	return resp
}

// writeSendPage writes the page to send from, if the client of r may send. p has the addresses of
// the page, and here is its place in the navigation.
func (h *sendPages) writeSendPage(w http.ResponseWriter, r *http.Request, to *httpapi.Lookup, here string, p view.SendPage) *api.Response {
	if err := h.api.Sender.CheckRoute(r, to); err != nil {
		return h.ErrorResponse(r, err)
	}
	p.Key, p.MaxFiles, p.MaxFileSize = to.Name, h.Resolved.Limits.MaxFiles, humanize.IBytes(uint64(h.Resolved.Limits.MaxFileSize))
	if h.App.Conf.QueueSettings == nil {
		p.Messages = ""
	}
	device := p.Device + "?" + httpapi.DeviceQuery
	p.Device = ""
	if to.Name != "" {
		k, err := to.Key(r.Context())
		if err != nil {
			return h.ErrorResponse(r, err)
		}
		setChoices(&p, k)
		if p.Tabs != nil { // managers know the destinations
			p.Otherwise = namesOf(k.DefaultTargets)
		}
		p.Sources = h.Sources.Names()
		if h.Has.Push && h.api.Devices.MaySubscribe(r, k) == nil {
			p.Device = device
		}
	} else {
		p.Otherwise = countServices(h.Resolved.DefaultTargets)
	}
	// The browser may keep the typed text, for when the user comes back.
	w.Header().Set("Cache-Control", "private, no-cache")
	if err := h.WritePage(w, r, http.StatusOK, here, p); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

// serveAbout redirects managers to the console, and tells others what this address is.
func (h *sendPages) serveAbout(w http.ResponseWriter, r *http.Request) *api.Response {
	w.Header().Set("Cache-Control", "private, no-cache")
	if h.Has.Console && h.MayManage(r) == nil {
		_ = httpapi.SeeOther(w, httpapi.AddressOf(r, httpapi.RouteConsole), "") // it cannot fail
		return nil
	}
	scheme, host := httpapi.SiteAddress(r)
	p := view.AboutPage{Root: api.RootOf(r.URL.Path), Address: scheme + "://" + host + httpapi.StrippedPrefix(r) + httpapi.RouteNotify}
	if err := h.WritePage(w, r, http.StatusOK, "", p); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

// setChoices sets the tags of a key.
func setChoices(p *view.SendPage, k *site.Key) {
	p.Otherwise = countServices(k.DefaultTargets)
	p.Others = len(k.DefaultTargets) < len(k.Targets)
	seen := map[string]bool{}
	for _, t := range k.Targets {
		for _, tag := range t.Tags {
			_, tag = notifier.SplitTag(strings.ToLower(tag))
			if seen[tag] || tag == "always" || tag == "all" {
				continue
			}
			seen[tag] = true
			// The tag was checked when the configuration was loaded.
			if e, err := notifier.ParseTags(tag); err == nil {
				p.Tags = append(p.Tags, view.Tag{Name: tag, Services: countServices(k.Select(e))})
			}
		}
	}
	slices.SortFunc(p.Tags, func(a, b view.Tag) int { return strings.Compare(a.Name, b.Name) })
	if p.Others {
		p.Tags = append(p.Tags, view.Tag{Name: "all", Services: countServices(k.Targets)})
	}
}

// countServices returns the names of the targets' services, such as "XML, 2 × JSON". The page for
// senders shows no more, because senders need not know where messages go.
func countServices(targets []notifier.Target) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Service()
	}
	return inline.Names(names)
}
