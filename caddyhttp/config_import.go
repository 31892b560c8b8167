package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// What reading the configurations of Apprise may take: the time for all of a
// key, and the bytes of one file.
const (
	importTimeout = 10 * time.Second
	maxImport     = 1 << 20
)

// importPath makes the location of a file absolute that is relative to the
// Caddyfile it is named in. Addresses, and what begins with a placeholder,
// stay as they are.
func importPath(location, caddyfile string) (string, error) {
	switch {
	case location == "":
		return "", errors.New("the path of a file or its address is expected")
	case strings.Contains(location, "://"), strings.HasPrefix(location, "{"), filepath.IsAbs(location):
		return location, checkPlaceholders(location)
	}
	path, err := filepath.Abs(filepath.Join(filepath.Dir(caddyfile), location))
	if err != nil {
		return "", fmt.Errorf("making the path absolute: %w", err)
	}
	return path, checkPlaceholders(location)
}

// importApprise makes destinations of the configurations at these locations.
// A mistake in them is an error. What merely has no effect is logged, other
// than with the URLs of the Caddyfile: the files have been in use as they are.
func (l loader) importApprise(name string, locations []string) (targets []notifier.Target, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
	defer cancel()
	log := l.log.With(zap.String("key", name))
	for i, location := range locations {
		where := fmt.Sprintf("key %s, import_apprise %d", name, i+1)
		if location, err = resolve(location); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		entries, warnings, err := appriseconfig.Load(ctx, location, readImport)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		for _, w := range warnings {
			log.Warn("apprise configuration", zap.String("warning", w))
		}
		for _, e := range entries {
			at := fmt.Sprintf("%s:%d: ", e.File, e.Line)
			d, err := l.imported(e)
			if err != nil {
				return nil, fmt.Errorf("%s: %s%w", where, at, err)
			}
			for _, w := range d.Warnings() {
				log.Warn("apprise configuration", zap.String("warning", at+w))
			}
			targets = append(targets, notifier.Target{Destination: d, Tags: e.Tags})
		}
	}
	return targets, nil
}

// imported makes a destination of an entry. No placeholder is resolved in it:
// a file that was fetched could read others with {file.…}.
func (l loader) imported(e appriseconfig.Entry) (*notifier.Destination, error) {
	for _, tag := range e.Tags {
		if strings.EqualFold(tag, "all") {
			continue // it does no harm, and the files have been in use as they are
		}
		if err := checkTag(tag); err != nil {
			return nil, err
		}
	}
	d, err := l.parse(e.URL)
	if err != nil {
		return nil, notifier.WithSuggestion(e.URL, err)
	}
	return d, l.services.permit(d)
}

// readImport reads a file, or fetches one.
func readImport(ctx context.Context, location string) ([]byte, error) {
	if strings.Contains(location, "://") {
		return fetchImport(ctx, location)
	}
	f, err := os.Open(location)
	if err != nil {
		return nil, errs.WithoutPath(err) // the path is said already
	}
	defer f.Close()
	return readLimited(f)
}

// fetchImport asks with GET, and with POST where that is not allowed: the
// servers of configurations for Apprise, which itself posts, take nothing else.
func fetchImport(ctx context.Context, address string) ([]byte, error) {
	resp, err := requestImport(ctx, http.MethodGet, address)
	if err == nil && resp.StatusCode == http.StatusMethodNotAllowed {
		resp.Body.Close()
		resp, err = requestImport(ctx, http.MethodPost, address)
	}
	if err != nil {
		// The address may hold a password, and the error holds the address.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return readLimited(resp.Body)
}

func requestImport(ctx context.Context, method, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	r.Header.Set("User-Agent", userAgent)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	return client.Do(r)
}

func readLimited(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxImport+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxImport {
		return nil, errors.New("it is larger than 1 MiB")
	}
	return content, nil
}
