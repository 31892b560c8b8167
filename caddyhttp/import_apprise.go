package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// imports returns the function that returns the targets in the files that a key imports, or
// nil for none. It warns about a parameter without effect: in a Caddyfile that is an error, but
// these files are in use already.
func (l *keyLoader) imports(key string, c *Key) func(warn func(about, text string)) ([]notifier.Target, error) {
	if len(c.ImportApprise) == 0 && (len(c.Variables) == 0 || len(c.URLs) == 0) {
		return nil
	}
	return func(warn func(about, text string)) (targets []notifier.Target, err error) {
		variables, err := placeholder.NewVariables(c.Variables)
		if err == nil && variables != nil && len(c.ImportApprise) == 0 {
			err = errVariablesUnused
		}
		if err != nil {
			return nil, l.locate(block.KeyPrefix+key, errs.Prefix("variables", err))
		}
		ctx, cancel := context.WithTimeout(context.Background(), saved.ImportTimeout)
		defer cancel()
		for i, location := range c.ImportApprise {
			imported, err := l.importFile(ctx, location, variables, warn)
			if err != nil {
				return nil, l.locate(importName(key, i), err)
			}
			targets = append(targets, imported...)
		}
		return targets, nil
	}
}

// importName returns the name of import i of a key, counted from 0, in errors
// and in block.Info.
func importName(key string, i int) string { return fmt.Sprintf("key %s, import_apprise %d", key, i+1) }

func (l *keyLoader) importFile(
	ctx context.Context, location string, variables *placeholder.Variables, warn func(about, text string),
) (targets []notifier.Target, err error) {
	if location, err = placeholder.Resolve(location); err != nil {
		return nil, err
	}
	entries, warnings, err := appriseconfig.Load(ctx, location, readImport)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		warn("apprise configuration", w.String())
	}
	for _, e := range entries {
		at := fmt.Sprintf("%s:%d: ", e.File, e.Line)
		t, err := l.importEntry(e, variables)
		if u, ok := errors.AsType[*notifier.URLError](err); ok && u.Retired {
			warn("apprise configuration", at+u.Error()+"; the URL is skipped")
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s%w", at, err)
		}
		for _, w := range t.Warnings() {
			warn("apprise configuration", at+w)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// importEntry returns the target of an entry. It replaces no placeholders:
// a file from a server could otherwise read local files with {file.…}.
func (l *keyLoader) importEntry(e appriseconfig.Entry, variables *placeholder.Variables) (t notifier.Target, err error) {
	for _, tag := range e.Tags {
		if _, name := notifier.SplitTag(tag); strings.EqualFold(name, "all") {
			continue // it has no effect, but existing files have it
		}
		if err := site.CheckTag(tag); err != nil {
			return t, err
		}
	}
	t.Tags = e.Tags
	url, err := variables.Expand(e.URL, e.Template...)
	if err != nil {
		return t, err
	}
	if e.Template != nil {
		t.Variable = &notifier.VariableURL{URL: url, Variables: slices.Clone(e.Template)}
		t.Variable.SetDefaults(variables.Value)
		t.Destination, err = l.importTemplate(t.Variable, notifier.Files{Dir: e.Dir})
		return t, err
	}
	if t.Destination, err = l.parse(url, notifier.Files{Dir: e.Dir}); err != nil {
		return t, message.WithSuggestion(url, err)
	}
	return t, l.services.Check(t.Destination)
}

// importTemplate returns the destination that v has for a message without values, and makes v
// ready for messages with values. The values cannot lead to another server.
func (l *keyLoader) importTemplate(v *notifier.VariableURL, files notifier.Files) (*notifier.Destination, error) {
	schemes, err := v.Schemes()
	switch {
	case err != nil:
		return nil, err
	case schemes != nil && !l.services.Permits(schemes):
		return nil, fmt.Errorf("the service of %s:// may not be used here; the setting services forbids it", schemes[0])
	}
	if err := v.CheckFixed(); err != nil {
		return nil, err
	}
	fill := func(values map[string]string, parse parseFunc) (*notifier.Destination, error) {
		d, err := v.Destination(values, func(url string) (*notifier.Destination, error) { return parse(url, files) })
		if err != nil {
			return nil, err
		}
		return d, l.services.Check(d)
	}
	v.Make = func(values map[string]string) (*notifier.Destination, error) { return fill(values, parseUnshared) }
	d, err := fill(nil, l.parse)
	if errors.Is(err, notifier.ErrNoValue) {
		return notifier.Unfilled(v.URL, nil, err), nil
	}
	return d, err
}

// ImportApprise returns the entries of a configuration file of Apprise, at a path
// or an address, or an error if import_apprise could not use the file.
func ImportApprise(ctx context.Context, location string, services *Services) ([]appriseconfig.Entry, error) {
	entries, _, err := appriseconfig.Load(ctx, location, readImport)
	if err != nil {
		return nil, err
	}
	l := keyLoader{parse: parseUnshared, services: services.rule()}
	for _, e := range entries {
		if _, err := l.importEntry(e, nil); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", e.File, e.Line, err)
		}
	}
	if len(entries) == 0 {
		return nil, errors.New("it has no URL")
	}
	return entries, nil
}

// readImport returns the content of a file, from a path or an address.
func readImport(ctx context.Context, location string) ([]byte, error) {
	if strings.Contains(location, "://") {
		return fetchImport(ctx, location)
	}
	f, err := os.Open(location)
	if err != nil {
		return nil, errs.WithoutPath(err) // the caller adds the location
	}
	defer f.Close()
	return appriseconfig.ReadAll(f)
}

// fetchImport fetches a file with GET or, if the server does not allow that,
// with POST, as Apprise does.
func fetchImport(ctx context.Context, address string) ([]byte, error) {
	resp, err := requestImport(ctx, http.MethodGet, address)
	if err == nil && resp.StatusCode == http.StatusMethodNotAllowed {
		resp.Body.Close()
		resp, err = requestImport(ctx, http.MethodPost, address)
	}
	if err != nil {
		// A url.Error contains the address, which may hold a password.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return appriseconfig.ReadAll(resp.Body)
}

func requestImport(ctx context.Context, method, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	r.Header.Set("User-Agent", version.Agent)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	return client.Do(r)
}
