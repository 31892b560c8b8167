package caddyhttp

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
)

// locate finds the positions of the settings, if they were adapted from a Caddyfile in this
// process. It returns module, which has the settings and the ID id, in JSON as the adapter writes it.
func (s *Settings) locate(id caddy.ModuleID, module any) []byte {
	text, err := json.Marshal(module)
	if err == nil && s.Caddyfile == nil { // it fails for nothing that was read from JSON
		s.Caddyfile = block.Recall(string(id), text)
	}
	return text
}

// The IDs of the modules.
const (
	appID     caddy.ModuleID = "notify"
	handlerID caddy.ModuleID = "http.handlers.notify"
)

// forgetPositions drops the positions that only a start needs.
func (a *App) forgetPositions() {
	block.Forget(a.Caddyfile)
	for _, h := range a.handlers {
		block.Forget(h.Caddyfile)
	}
	a.Caddyfile = a.Caddyfile.Trimmed()
}

// addFiles adds the files that the settings of the app or of a site name. module has the settings
// in JSON.
func (a *App) addFiles(s *Settings, module []byte) {
	a.files.AddJSON(module)
	for _, url := range s.DefaultURLs {
		a.files.AddURL(url, s.DefaultURLsDir)
	}
	for _, key := range s.Keys {
		if key == nil {
			continue
		}
		for _, u := range key.URLs {
			a.files.AddURL(u.URL, u.Dir)
		}
		for _, location := range key.ImportApprise {
			a.files.AddImport(location)
		}
	}
	for _, source := range s.Sources {
		for _, path := range []string{source.TitleFile, source.BodyFile} {
			if path != "" {
				a.files.Add(path)
			}
		}
	}
}
