package caddyhttp

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// The page with a form for messages. It uses only these files and the style
// sheet of all pages.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.js
	pageJS string

	pageTemplate = api.NewPageTemplate("page", pageHTML)
)

// pagePolicy is the Content Security Policy of the page. It allows scripts and
// styles by their hashes, so that nothing in a message can run. It includes the
// style of the preview, which the page's script shows in a frame that has both
// policies.
var pagePolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; frame-src 'self'; img-src data:" +
	"; script-src " + api.CSPHash(pageJS) + "; style-src " + api.PageStyle + " " + api.CSPHash(previewCSS)

// page is the data of the page's template.
type page struct {
	Address   string // of the page itself; messages are posted to it
	Messages  string // the address of messages in the queue, without their ID; "" without a queue
	Key       string // "" for messages with URLs
	Tags      []tagChoice
	Otherwise string // the services that get a message if nothing is chosen
	Others    bool   // there are more destinations than those
	MaxCount  int
	MaxSize   string
	Sources   []string // the names of the sources of a key
	JS        template.JS
}

// Title returns the title of the page.
func (p page) Title() string {
	if p.Key == "" {
		return "Send a message"
	}
	return "Send a message to " + p.Key
}

// tagChoice is a tag of a key and the services that have it.
type tagChoice struct{ Name, Services string }

// servePage writes the page, or returns the response to a request that is not
// a browser's GET. The page shows services and tags, but nothing of URLs.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	if !h.resolved.page {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use POST", r.Method).Response()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !api.PrefersHTML(r) {
		w.Header().Set("Allow", "GET, HEAD, POST")
		return api.Errorf(http.StatusMethodNotAllowed, "messages are sent with POST; GET shows a page to browsers (Accept: text/html)").Response()
	}
	if err := h.checkRoute(r, name); err != nil {
		return h.errorResponse(err)
	}
	p := page{
		Address: relativeAddress(r), Key: name,
		MaxCount: h.resolved.limits.MaxFiles, MaxSize: humanize.IBytes(uint64(h.resolved.limits.MaxFileSize)),
		JS: template.JS(pageJS),
	}
	if h.app.queueSettings != nil {
		p.Messages = relativeMessages(r, name)
	}
	if name != "" {
		k, err := h.resolved.key(r.Context(), name)
		if err != nil {
			return h.errorResponse(err)
		}
		p.setChoices(k)
		p.Sources = h.resolved.sourceNames()
	} else {
		p.Otherwise = countServices(h.resolved.defaultTargets)
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return h.errorResponse(err)
	}
	// The browser may keep what the user typed, for when the user comes back.
	w.Header().Set("Cache-Control", "private, no-cache")
	writePage(w, r, b.Bytes(), pagePolicy)
	return nil
}

// setChoices sets the tags of a key.
func (p *page) setChoices(k *key) {
	p.Otherwise = countServices(k.defaultTargets)
	p.Others = len(k.defaultTargets) < len(k.targets)
	seen := map[string]bool{}
	for _, t := range k.targets {
		for _, tag := range t.Tags {
			_, tag = notifier.SplitTag(strings.ToLower(tag))
			if seen[tag] || tag == "always" || tag == "all" {
				continue
			}
			seen[tag] = true
			// The tag was checked when the configuration loaded.
			if e, err := notifier.ParseTags(tag); err == nil {
				p.Tags = append(p.Tags, tagChoice{tag, countServices(k.match(e))})
			}
		}
	}
	sort.Slice(p.Tags, func(i, j int) bool { return p.Tags[i].Name < p.Tags[j].Name })
	if p.Others {
		p.Tags = append(p.Tags, tagChoice{"all", countServices(k.targets)})
	}
}

// countServices returns the names of the targets' services, each with its
// count, such as "JSON, XML ×2".
func countServices(targets []notifier.Target) string {
	count := map[string]int{}
	var names []string
	for _, t := range targets {
		if count[t.Service()]++; count[t.Service()] == 1 {
			names = append(names, t.Service())
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = name + " ×" + strconv.Itoa(n)
		}
	}
	return strings.Join(names, ", ")
}

// writePage writes an HTML document with a Content Security Policy.
func writePage(w http.ResponseWriter, r *http.Request, body []byte, policy string) {
	writePageStatus(w, r, http.StatusOK, body, policy)
}

// writePageStatus is writePage with another status than 200.
func writePageStatus(w http.ResponseWriter, r *http.Request, status int, body []byte, policy string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // the address contains the key
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails only if the client is gone
	}
}

// relativeAddress returns the address of the request relative to itself. It
// works below any path prefix that Caddy, or a proxy before Caddy, removes. It
// has no query string, because that can change a message.
func relativeAddress(r *http.Request) string {
	path := clientURL(r).Path
	return "./" + url.PathEscape(path[strings.LastIndexByte(path, '/')+1:])
}

// relativeMessages returns the address of the messages in the queue, relative
// to the address of the request: that of the key name or, if name is "",
// /notify.
func relativeMessages(r *http.Request, name string) string {
	slash := strings.HasSuffix(r.URL.Path, "/")
	switch {
	case name != "" && slash:
		return "../" + messagesName + "/"
	case name == "" && !slash:
		return relativeAddress(r) + "/" + messagesName + "/"
	}
	return "./" + messagesName + "/"
}

// clientURL returns the URL of r before Caddy removed a prefix from its path.
func clientURL(r *http.Request) *url.URL {
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return original.URL
	}
	return r.URL
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
