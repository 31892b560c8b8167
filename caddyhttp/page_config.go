package caddyhttp

import (
	"bytes"
	_ "embed"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
)

// The pages for those who manage saved configurations: the list of keys, and
// one for each key. They work without a script.
var (
	//go:embed page_config.html
	pageConfigHTML string

	pageConfigTemplate = api.NewPageTemplate("config", pageConfigHTML)
)

var pageConfigPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; style-src " + api.PageStyle

// configPageData is the data of the template.
type configPageData struct {
	Root string // address of the folder that has add/, cfg/ and notify/, relative to the page
	Keys []string

	Key          string // "" for the list
	Editable     bool
	Problem      string // why the configuration cannot be used
	Text, Format string
	Targets      []pageTarget
}

type pageTarget struct{ Service, URL, Tags string }

// Title returns the title of the page.
func (p configPageData) Title() string {
	if p.Key == "" {
		return "Keys"
	}
	return "Key " + p.Key
}

// rootOf returns the address of the folder that has the routes, relative to a
// request below it.
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

// serveKeysPage lists the keys, of the configuration and saved ones. Its form
// leads to the page of a key.
func (h *Handler) serveKeysPage(w http.ResponseWriter, r *http.Request, saved []string) error {
	if key := r.URL.Query().Get("key"); key != "" {
		if err := checkKeyName(key); err != nil {
			return api.Errorf(http.StatusBadRequest, "%w", err)
		}
		w.Header().Set("Location", rootOf(r.URL.Path)+"cfg/"+key)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	keys := append(slices.Collect(maps.Keys(h.resolved.keys)), saved...)
	slices.Sort(keys)
	return writeConfigPage(w, r, configPageData{Root: rootOf(r.URL.Path), Keys: slices.Compact(keys)})
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
	p := configPageData{Root: rootOf(r.URL.Path), Key: name, Editable: h.resolved.keys[name] == nil}
	if p.Editable {
		c, err := h.resolved.saved.store.Load(r.Context(), name)
		switch {
		case err == nil:
			p.Text, p.Format = c.Text, c.Format
		case !errors.Is(err, configstore.ErrNotFound):
			return errSavedUnavailable(err)
		}
	}
	k, err := h.resolved.key(r.Context(), name)
	switch {
	case err == nil:
		for _, t := range k.targets {
			p.Targets = append(p.Targets, pageTarget{t.Service(), t.String(), strings.Join(t.Tags, ", ")})
		}
	case p.Text != "":
		p.Problem = "The saved configuration cannot be used; the log of the gateway has the reason."
	}
	return writeConfigPage(w, r, p)
}

func writeConfigPage(w http.ResponseWriter, r *http.Request, p configPageData) error {
	var b bytes.Buffer
	if err := pageConfigTemplate.Execute(&b, p); err != nil {
		return err
	}
	writePage(w, r, b.Bytes(), pageConfigPolicy)
	return nil
}
