package caddyhttp

import (
	_ "embed"
	"maps"
	"net/http"
	"slices"

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
	Title string
	Root  string // as in configPageData
	Keys  []string
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
	return writeConfigPage(w, r, http.StatusOK, pageConfigListTemplate, configListData{"Keys", rootOf(r.URL.Path), slices.Compact(keys)})
}
