package caddyhttp

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

// The list of keys for those who manage saved configurations.
var (
	//go:embed page_config_list.html
	pageConfigListHTML string

	pageConfigListTemplate = api.NewPageTemplate("list", pageConfigListHTML)
)

// configListData is the data of the template.
type configListData struct {
	Title    string
	Root     string // as in configPageData
	Search   string
	All      int // keys
	Found    int // keys with the text of the search in their names
	First    int // number of the first key on the page, from 1 on
	Keys     []listedKey
	Previous string // address of the page before; "" for none
	Next     string
}

// Last returns the number of the last key on the page.
func (d configListData) Last() int { return d.First + len(d.Keys) - 1 }

// listedKey is a key in the list.
type listedKey struct {
	Name              string
	Fixed             bool   // it is in the configuration of the gateway
	Services          string // with their counts
	URLs              int
	Problem           string    // why it cannot be used
	Delivered, Failed time.Time // of the last messages; zero for never
}

// Limits of the list of keys.
const (
	maxListedKeys = 50 // on a page
	maxListReads  = 8  // saved keys that are read at once
)

// serveKeysPage lists the keys, of the configuration and saved ones. One of its
// forms leads to the page of a key.
func (h *Handler) serveKeysPage(w http.ResponseWriter, r *http.Request, saved []string) error {
	query := r.URL.Query()
	if key := query.Get("key"); key != "" {
		if err := checkKeyName(key); err != nil {
			return api.Errorf(http.StatusBadRequest, "%w", err)
		}
		w.Header().Set("Location", rootOf(r.URL.Path)+"cfg/"+key)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	names := append(slices.Collect(maps.Keys(h.resolved.keys)), saved...)
	slices.Sort(names)
	names = slices.Compact(names)
	d := configListData{Title: "Keys", Root: rootOf(r.URL.Path), Search: strings.TrimSpace(query.Get("search")), All: len(names)}
	if d.Search != "" {
		text := strings.ToLower(d.Search)
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(strings.ToLower(name), text) })
	}
	d.Found = len(names)
	pages := (len(names) + maxListedKeys - 1) / maxListedKeys
	n, err := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	if err != nil || n < 1 || n > max(pages, 1) {
		return api.Errorf(http.StatusNotFound, "there is no such page; the last one is %d", max(pages, 1))
	}
	address := func(n int) string {
		if n < 1 || n > pages {
			return ""
		}
		v := url.Values{"page": {strconv.Itoa(n)}}
		if d.Search != "" {
			v.Set("search", d.Search)
		}
		return d.Root + "cfg?" + v.Encode()
	}
	d.Previous, d.Next = address(n-1), address(n+1)
	begin := (n - 1) * maxListedKeys
	d.First = begin + 1
	d.Keys = h.listKeys(r.Context(), names[begin:min(begin+maxListedKeys, len(names))])
	return writeConfigPage(w, r, http.StatusOK, pageConfigListTemplate(), d)
}

// listKeys describes keys. It reads saved keys that are not in use, and does
// not keep them in memory.
func (h *Handler) listKeys(ctx context.Context, names []string) []listedKey {
	out := make([]listedKey, len(names))
	slots := make(chan struct{}, maxListReads)
	var wg sync.WaitGroup
	for i, name := range names {
		out[i].Name = name
		if k := h.resolved.keys[name]; k != nil {
			out[i].Fixed = true
			out[i].setTargets(k)
		} else {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				h.resolved.saved.describe(ctx, &out[i])
			})
		}
		if h.solelyDefines(ctx, name) {
			last := h.shared.history.lastOf(name)
			out[i].Delivered, out[i].Failed = last.delivered, last.failed
		}
	}
	wg.Wait()
	return out
}

func (l *listedKey) setTargets(k *key) {
	l.URLs, l.Services = len(k.targets), countServices(k.targets)
}

// describe sets the services of a saved key. A key that is not in use is read, and
// not kept in memory.
func (s *savedKeys) describe(ctx context.Context, l *listedKey) {
	s.mu.Lock()
	used := s.keys[l.Name] != nil
	s.mu.Unlock()
	if used {
		if k, err := s.find(ctx, l.Name); err == nil {
			l.setTargets(k)
			return
		}
	}
	c, err := s.store.Load(ctx, l.Name)
	if err != nil {
		l.Problem = "It cannot be read."
		return
	}
	// Files that it includes are not fetched for the list.
	k, _, err := s.parseWith(ctx, l.Name, c.Format, c.Text, func(context.Context, string) ([]byte, error) { return nil, nil })
	if err != nil {
		l.Problem = "It has mistakes, or only includes others."
		return
	}
	l.setTargets(k)
	s.releaseTargets(k)
}
