package caddyhttp

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// servePage writes the page with a form for messages, or returns the response to
// a request that is not a browser's GET. The page shows services and tags, but
// nothing of URLs.
func (h *pages) servePage(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	if !h.resolved.Page {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use POST", r.Method).Response()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !api.PrefersHTML(r) {
		w.Header().Set("Allow", "GET, HEAD, POST")
		return api.Errorf(http.StatusMethodNotAllowed, "messages are sent with POST; GET shows a page to browsers (Accept: text/html)").Response()
	}
	if name == "" && !h.resolved.Stateless {
		return h.serveAbout(w, r)
	}
	if h.isDevicePage(r, name) {
		return h.serveDevicePage(w, r, name)
	}
	if err := h.checkRoute(r, name); err != nil {
		return h.errorResponse(err)
	}
	p := view.SendPage{
		Address: formAddress(r), Key: name,
		MaxFiles: h.resolved.Limits.MaxFiles, MaxFileSize: humanize.IBytes(uint64(h.resolved.Limits.MaxFileSize)),
	}
	if h.app.QueueSettings != nil {
		p.Messages = relativeMessages(r, name)
	}
	if name != "" {
		k, err := h.resolved.Key(r.Context(), name)
		if err != nil {
			return h.errorResponse(err)
		}
		setChoices(&p, k)
		p.Sources = h.resolved.SourceNames()
		if h.has.push && h.maySubscribe(r, k) == nil {
			p.Device = relativeAddress(r) + "?" + deviceQuery
		}
	} else {
		p.Otherwise = countServices(h.resolved.DefaultTargets)
	}
	// The browser may keep what the user typed, for when the user comes back.
	w.Header().Set("Cache-Control", "private, no-cache")
	if err := h.writePage(w, r, http.StatusOK, "", p); err != nil {
		return h.errorResponse(err)
	}
	return nil
}

// serveAbout leads who may manage to the console, and tells others what this is.
func (h *pages) serveAbout(w http.ResponseWriter, r *http.Request) *api.Response {
	w.Header().Set("Cache-Control", "private, no-cache")
	if h.has.console && h.mayManage(r) == nil {
		w.Header().Set("Location", rootOf(r.URL.Path)+routeConsole[1:])
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	scheme, host := siteAddress(r)
	p := view.AboutPage{Root: rootOf(r.URL.Path), Address: scheme + "://" + host + strippedPrefix(r) + routeNotify}
	if err := h.writePage(w, r, http.StatusOK, "", p); err != nil {
		return h.errorResponse(err)
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
			// The tag was checked when the configuration loaded.
			if e, err := notifier.ParseTags(tag); err == nil {
				p.Tags = append(p.Tags, view.Tag{Name: tag, Services: countServices(k.Match(e))})
			}
		}
	}
	slices.SortFunc(p.Tags, func(a, b view.Tag) int { return strings.Compare(a.Name, b.Name) })
	if p.Others {
		p.Tags = append(p.Tags, view.Tag{Name: "all", Services: countServices(k.Targets)})
	}
}

// countServices returns the names of the targets' services, each with its
// count, such as "JSON, XML ×2".
func countServices(targets []notifier.Target) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Service()
	}
	return countNames(names)
}

// countNames returns names, each once with its count.
func countNames(all []string) string {
	count := map[string]int{}
	var names []string
	for _, name := range all {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = name + " ×" + strconv.Itoa(n)
		}
	}
	return strings.Join(names, ", ")
}

// relativeAddress returns the address of the request relative to itself. It
// works below any path prefix that Caddy, or a proxy before Caddy, removes. It
// has no query string, because that can change a message.
func relativeAddress(r *http.Request) string {
	path := clientURL(r).Path
	return "./" + url.PathEscape(path[strings.LastIndexByte(path, '/')+1:])
}

// tokenQuery is the query parameter with a secret of a key.
const tokenQuery = "token"

// formAddress is relativeAddress with the token of the query string, if there is one,
// so that the form can be used like its page.
func formAddress(r *http.Request) string {
	address := relativeAddress(r)
	if token := r.URL.Query().Get(tokenQuery); token != "" {
		address += "?" + tokenQuery + "=" + url.QueryEscape(token)
	}
	return address
}

// relativeMessages returns the address of the messages in the queue, relative
// to the address of the request: that of the key name or, if name is "",
// /notify.
func relativeMessages(r *http.Request, name string) string {
	slash := strings.HasSuffix(r.URL.Path, "/")
	switch {
	case name != "" && slash:
		return "../messages/"
	case name == "" && !slash:
		return relativeAddress(r) + "/messages/"
	}
	return "./messages/"
}

// strippedPrefix returns the prefix that Caddy removed from the path of r, such
// as /alerts for handle_path /alerts/*.
func strippedPrefix(r *http.Request) string {
	prefix, ok := strings.CutSuffix(clientURL(r).Path, r.URL.Path)
	if !ok {
		return "" // the path was rewritten
	}
	return prefix
}
