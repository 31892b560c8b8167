package caddyhttp

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// fingerprint returns the fingerprint of the files that the settings name, and
// those that the queue and the mail server of app name. app may be nil.
func (s *Settings) fingerprint(app *App) string {
	var f block.Fingerprint
	if app != nil && app.Queue != nil {
		for _, text := range []string{app.Queue.Postgres, app.Queue.Path, app.Queue.Secret} {
			f.AddPlaceholders(text)
		}
	}
	if app != nil && app.SMTP != nil {
		app.SMTP.AddFiles(&f)
	}
	for _, url := range s.DefaultURLs {
		f.AddURL(url, s.DefaultURLsDir)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		for _, u := range s.Keys[name].URLs {
			f.AddURL(u.URL, u.Dir)
		}
		for _, location := range s.Keys[name].ImportApprise {
			addImport(&f, location)
		}
		for i := range keyOptions {
			if texts := keyOptions[i].texts; texts != nil {
				for _, text := range texts(s.Keys[name]) {
					f.AddPlaceholders(text)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		src := s.Sources[name]
		for _, path := range []string{src.TitleFile, src.BodyFile} {
			if path != "" {
				f.Add(path)
			}
		}
		f.AddPlaceholders(src.Secret)
		f.AddPlaceholders(src.Token)
	}
	if s.Configs != nil {
		f.AddPlaceholders(s.Configs.Secret)
		for _, text := range valuesByName(s.Configs.Variables) {
			f.AddPlaceholders(text)
		}
	}
	return f.String()
}

// addImport adds to f a configuration file of Apprise and the files that it
// includes. It fetches nothing: files at web addresses are not part of the
// fingerprint.
func addImport(f *block.Fingerprint, location string) {
	f.AddPlaceholders(location)
	location, err := placeholder.Resolve(location)
	if err != nil {
		return
	}
	read := func(ctx context.Context, location string) ([]byte, error) {
		if strings.Contains(location, "://") {
			return nil, nil // an empty file, so that Load goes on
		}
		f.Add(location)
		if info, err := os.Stat(location); err != nil || !info.Mode().IsRegular() {
			return nil, err // reading a pipe would consume its content
		}
		return readImport(ctx, location)
	}
	entries, _, err := appriseconfig.Load(context.Background(), location, read)
	if err != nil {
		return // the error shows when the configuration loads
	}
	for _, e := range entries {
		f.AddNamed(e.URL, e.Dir)
	}
}
