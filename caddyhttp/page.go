package caddyhttp

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The page on which to write a message in a browser: all of it is in these
// files, and it loads nothing else.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
	//go:embed page_preview.html
	previewHTML string
	//go:embed page_preview.css
	previewCSS string

	pageTemplate    = template.Must(template.New("page").Parse(pageHTML))
	previewTemplate = template.Must(template.New("preview").Parse(previewHTML))
)

// What the page and its preview may do (Content Security Policy Level 3).
// Styles and scripts are those of the files above, by their hashes: nothing
// that is part of a message can run. A preview that the page's script shows is
// under both.
var (
	pagePolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; frame-src 'self'; img-src data:" +
		"; script-src " + cspHash(pageJS) + "; style-src " + cspHash(pageCSS) + " " + cspHash(previewCSS)
	previewPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'self'; form-action 'none'; img-src data:; sandbox; style-src " + cspHash(previewCSS)
)

func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// previewQuery is the whole query string of a POST that wants to see how its
// message looks, and to send nothing.
const previewQuery = "preview"

// compose answers what is no POST: with the page on which to write a message,
// if that is wanted. Nothing on it is secret: of destinations it shows the
// names of their services and their tags.
func (h *Handler) compose(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !h.resolved.page {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "only POST is possible here").Response()
	}
	if !get || !api.PrefersHTML(r) {
		w.Header().Set("Allow", "GET, HEAD, POST")
		return api.Errorf(http.StatusMethodNotAllowed, "messages are sent with POST; GET is for browsers and answers in HTML alone").Response()
	}
	if err := h.checkRoute(name); err != nil {
		return h.errorResponse(err)
	}
	p := page{
		Address: ownAddress(r), Key: name,
		MaxCount: h.resolved.limits.MaxFiles, MaxSize: humanize.IBytes(uint64(h.resolved.limits.MaxFileSize)),
		CSS: template.CSS(pageCSS), JS: template.JS(pageJS),
	}
	if name != "" {
		p.choices(h.resolved.keys[name])
	} else {
		p.Otherwise = services(h.resolved.defaultTargets)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return h.errorResponse(err)
	}
	// The browser may keep what was typed in, for the way back to the page.
	w.Header().Set("Cache-Control", "private, no-cache")
	writePage(w, r, b.Bytes(), pagePolicy)
	return nil
}

// preview shows a message as a destination gets it that shows HTML.
func (h *Handler) preview(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	if !h.resolved.page {
		return api.Errorf(http.StatusForbidden, "the preview is part of the page, which is turned off here").Response()
	}
	if err := h.checkRoute(name); err != nil {
		return h.errorResponse(err)
	}
	if err := h.resolved.checkOrigin(r); err != nil {
		return h.errorResponse(err)
	}
	// A preview is no alert, with or without a key.
	e, err := h.shared.inFlight.enterClient(h.resolved.inFlightLimits(), clientAddress(r))
	if err != nil {
		return h.errorResponse(err)
	}
	defer e.leave()
	var b bytes.Buffer
	if err := h.render(&b, w, r); err != nil {
		return h.errorResponse(err)
	}
	w.Header().Set("Cache-Control", "no-store")
	writePage(w, r, b.Bytes(), previewPolicy)
	return nil
}

func (h *Handler) render(b *bytes.Buffer, w http.ResponseWriter, r *http.Request) error {
	q, err := api.Read(w, r, h.resolved.limits)
	if err != nil {
		return err
	}
	defer q.Close()
	m, err := q.Draft()
	if err != nil {
		return err
	}
	return previewTemplate.Execute(b, struct {
		CSS   template.CSS
		Title string
		Body  template.HTML // what is not to happen in it, previewPolicy and the frame forbid
	}{template.CSS(previewCSS), m.Title, template.HTML(markup.Convert(m.Body, m.Format, notifier.HTML))})
}

func writePage(w http.ResponseWriter, r *http.Request, body []byte, policy string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // the address holds the key
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client has gone
	}
}

// ownAddress is the path that the client has asked for, relative to itself:
// so it holds below every prefix, whether Caddy strips it or a proxy before
// Caddy. The query string is left out, which can alter a message.
func ownAddress(r *http.Request) string {
	u := r.URL
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		u = original.URL
	}
	path := u.Path
	return "./" + url.PathEscape(path[strings.LastIndexByte(path, '/')+1:])
}

// page is what the template of the page shows.
type page struct {
	Address   string // of the page itself, and where the message goes
	Key       string // "" for messages that bring their own URLs
	Tags      []tagChoice
	Otherwise string // the services that get a message for which nothing is chosen
	Others    bool   // there are destinations that only a choice reaches
	MaxCount  int
	MaxSize   string
	CSS       template.CSS
	JS        template.JS
}

// tagChoice is a tag of a key, and the services that it means.
type tagChoice struct{ Name, Services string }

// choices lists the tags of a key.
func (p *page) choices(k *key) {
	p.Otherwise = services(k.fallback)
	p.Others = len(k.fallback) < len(k.targets)
	seen := map[string]bool{}
	for _, t := range k.targets {
		for _, tag := range t.Tags {
			tag = strings.ToLower(tag)
			if seen[tag] || tag == "always" || tag == "all" {
				continue
			}
			seen[tag] = true
			// A tag that was checked when the configuration loaded can be read.
			if e, err := notifier.ParseTags(tag); err == nil {
				p.Tags = append(p.Tags, tagChoice{tag, services(k.match(e))})
			}
		}
	}
	slices.SortFunc(p.Tags, func(a, b tagChoice) int { return strings.Compare(a.Name, b.Name) })
	if p.Others {
		p.Tags = append(p.Tags, tagChoice{"all", services(k.targets)})
	}
}

// services names the services of destinations, and how many there are of each.
func services(targets []notifier.Target) string {
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
