package caddyhttp

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
)

// The page of a key for those who manage saved configurations. It works without
// its scripts.
var (
	//go:embed page_config.html
	pageConfigHTML string
	//go:embed page_config_destinations.html
	pageConfigDestinations string
	//go:embed page_config_editor.html
	pageConfigEditor string
	//go:embed page_config_recent.html
	pageConfigRecent string

	pageConfigTemplate = api.NewPageTemplate("config", pageConfigHTML, pageConfigDestinations, destinationHTML, pageConfigEditor, pageConfigRecent)
)

// pageConfigScripts are the scripts of the page. Each serves one part of it.
var pageConfigScripts = []template.JS{template.JS(destinationsJS), template.JS(editorJS)}

var pageConfigPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; img-src data:" +
	"; script-src " + api.CSPHash(destinationsJS) + " " + api.CSPHash(editorJS) + " " + api.CSPHash(builderJS) + "; style-src " + api.PageStyle

// configPageData is the data of the template.
type configPageData struct {
	Root         string // address of the folder that has add/, cfg/ and notify/, relative to the page
	Key          string
	Editable     bool
	Saved        bool   // something is saved under the key
	Problem      string // why the saved configuration cannot be used
	Text, Format string // in the editor
	Targets      []pageTarget

	// Of a configuration that is not saved.
	Draft              bool
	NotSaved           string // why, if it has no mistakes
	URLs               int    // how many it has, if it has no mistakes
	Mistakes, Warnings []checkedMistake

	Ambiguous bool // another site has a key of this name
	Recent    []pageRecent
	Queue     *pageQueue // nil without a queue

	Scripts []template.JS
}

// Title returns the title of the page.
func (p configPageData) Title() string { return "Key " + p.Key }

// rootOf returns the address of the folder that has the routes, relative to a
// request for path.
func rootOf(path string) string {
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

// configPage returns the address of the page of the key that a request changes.
func configPage(r *http.Request) string {
	a, _ := configRoute(r.URL.Path)
	return rootOf(r.URL.Path) + "cfg/" + url.PathEscape(a.key)
}

// serveKeyPage writes the page of a key, which need not exist.
func (h *Handler) serveKeyPage(w http.ResponseWriter, r *http.Request, name string) error {
	if !api.PrefersHTML(r) || !h.resolved.page {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "the configuration of a key is read with POST; GET shows a page to browsers (Accept: text/html)")
	}
	if err := checkKeyName(name); err != nil {
		return api.Errorf(http.StatusNotFound, "%w", err)
	}
	if r.URL.Query().Has(buildQuery) {
		return h.serveBuilder(w, r, name)
	}
	return h.writeKeyPage(w, r, name, http.StatusOK, nil)
}

// writeKeyPage writes the page of a key. d is a configuration that is not saved,
// or nil.
func (h *Handler) writeKeyPage(w http.ResponseWriter, r *http.Request, name string, status int, d *draft) error {
	p, err := h.keyPage(r, name)
	if d != nil {
		p.setDraft(d)
	} else if err != nil {
		return err
	}
	return writeConfigPage(w, r, status, pageConfigTemplate(), p)
}

// keyPage returns the page of a key, which need not exist. If the storage
// cannot be read, the page does not show the saved configuration.
func (h *Handler) keyPage(r *http.Request, name string) (p configPageData, err error) {
	p = configPageData{Root: rootOf(r.URL.Path), Key: name, Editable: h.resolved.keys[name] == nil, Scripts: pageConfigScripts}
	if p.Editable {
		c, err := h.resolved.saved.store.Load(r.Context(), name)
		switch {
		case err == nil:
			p.Saved, p.Text, p.Format = true, c.Text, c.Format
		case !errors.Is(err, configstore.ErrNotFound):
			return p, errSavedUnavailable(err)
		}
	}
	p.setRecent(h, r.Context())
	k, err := h.resolved.key(r.Context(), name)
	switch {
	case err == nil:
		p.Targets = pageTargets(p.Root+"cfg/"+name, k.targets)
	case p.Saved:
		p.Problem = "The saved configuration cannot be used; the log of the gateway has the reason."
	}
	return p, nil
}

// writeConfigPage writes a page for those who manage saved configurations.
func writeConfigPage(w http.ResponseWriter, r *http.Request, status int, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	writePageStatus(w, r, status, b.Bytes(), pageConfigPolicy)
	return nil
}
