package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// savedError is a mistake in a saved configuration, or a warning about it. It
// does not quote the configuration, which may contain secrets.
type savedError struct {
	line int // from 1 on; 0 for the configuration as a whole
	url  int // the number of the URL, from 1 on; 0 if it is unknown
	err  error
}

// Error returns the problem with its position.
func (m savedError) Error() string {
	switch {
	case m.line == 0:
		return m.err.Error()
	case m.url == 0:
		return fmt.Sprintf("line %d: %v", m.line, m.err)
	}
	return fmt.Sprintf("URL %d, line %d: %v", m.url, m.line, m.err)
}

// Unwrap returns the error without its position.
func (m savedError) Unwrap() error { return m.err }

// text returns the problem without its position, as a client may see it.
func (m savedError) text() string { return errs.PublicText(m.err) }

// savedErrors are the mistakes in a saved configuration, in the order of their
// lines. There is at least one.
type savedErrors []savedError

// Error returns the first mistake.
func (m savedErrors) Error() string { return m[0].Error() }

// Unwrap returns the first mistake, because Error returns its text.
func (m savedErrors) Unwrap() error { return m[0] }

// newSavedError returns a mistake in a line of the configuration. If include is
// not 0, the mistake is in a file, which line include of the configuration
// includes.
func newSavedError(line, include int, err error) savedError {
	if include == 0 {
		return savedError{line: line, err: err}
	}
	if line > 0 {
		err = fmt.Errorf("the included file, line %d: %w", line, err)
	}
	return savedError{line: include, err: err}
}

// sortMistakes sorts mistakes by line.
func sortMistakes(m []savedError) {
	sort.SliceStable(m, func(i, j int) bool { return m[i].line < m[j].line })
}

// errSavedInclude is returned for a saved configuration that includes another while include is off.
var errSavedInclude = errors.New("saved configurations cannot include others here; write the URLs into this one")

// entries returns the entries of a saved configuration. fetch returns the
// content of an address that it includes.
func (s *savedKeys) entries(ctx context.Context, format, text string, fetch func(context.Context, string) ([]byte, error)) (entries []appriseconfig.Entry, mistakes, warnings []savedError) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importTimeout)
	defer cancel()
	location := "file://configuration.txt?format=text"
	if format == configstore.FormatYAML {
		location = "configuration.yml"
	}
	first := true
	entries, ignored, err := appriseconfig.Load(ctx, location, func(ctx context.Context, location string) ([]byte, error) {
		if first {
			first = false
			return []byte(text), nil
		}
		return fetch(ctx, location)
	})
	if all, ok := errors.AsType[appriseconfig.Errors](err); ok {
		for _, e := range all {
			mistakes = append(mistakes, newSavedError(e.Line, e.Include, cmp.Or(e.Err, errors.New(e.Problem))))
		}
	}
	for _, w := range ignored {
		if w.Line > 0 && w.Include == 0 {
			warnings = append(warnings, savedError{line: w.Line, err: errors.New(w.Problem)})
		}
	}
	return entries, mistakes, warnings
}

// parse returns the key of a saved configuration. The caller must release its
// destinations. A URL of a retired service is left out with a warning. The
// error is of type savedErrors.
func (s *savedKeys) parse(ctx context.Context, name, format, text string) (k *key, warnings []savedError, err error) {
	return s.parseWith(ctx, name, format, text, s.fetch)
}

func (s *savedKeys) parseWith(ctx context.Context, name, format, text string, fetch func(context.Context, string) ([]byte, error)) (*key, []savedError, error) {
	entries, mistakes, warnings := s.entries(ctx, format, text, fetch)
	numbered := len(mistakes) == 0 // entries with mistakes are missing
	if n := len(entries); n > s.MaxURLs {
		e := entries[s.MaxURLs]
		mistakes = append(mistakes, newSavedError(cmp.Or(e.Include, e.Line), 0, fmt.Errorf("the configuration has %d URLs; at most %d are allowed (max_urls)", n, s.MaxURLs)))
		entries = entries[:s.MaxURLs]
	}
	var retired []savedError // about URLs of retired services
	k := &key{name: name, limits: s.limits, log: s.log.WithLazy(zap.String("key", name))}
	for i, e := range entries {
		t, err := s.target(e)
		if err == nil {
			for _, w := range t.Warnings() {
				warnings = append(warnings, newSavedError(e.Line, e.Include, errors.New(w)))
			}
			k.targets = append(k.targets, t)
			continue
		}
		m := newSavedError(e.Line, e.Include, err)
		if u, ok := errors.AsType[*notifier.URLError](err); ok && u.Retired {
			retired = append(retired, m)
			continue
		}
		if numbered && e.Include == 0 {
			m.url = i + 1
		}
		mistakes = append(mistakes, m)
	}
	switch {
	case len(mistakes) > 0 || len(k.targets) > 0:
		warnings = append(warnings, retired...)
	case len(retired) > 0:
		mistakes = retired // no URL is left
	default:
		mistakes = []savedError{{err: errors.New("the configuration has no notification URL; add one")}}
	}
	sortMistakes(mistakes)
	sortMistakes(warnings)
	if len(mistakes) > 0 {
		s.releaseTargets(k)
		return nil, warnings, savedErrors(mistakes)
	}
	k.defaultTargets = k.targets
	return k, warnings, nil
}

func (s *savedKeys) target(e appriseconfig.Entry) (notifier.Target, error) {
	d, err := s.sender.Parse(e.URL, s.policy)
	if err != nil {
		return notifier.Target{}, notifier.WithSuggestion(e.URL, err)
	}
	if err := s.services.check(d); err != nil {
		s.sender.Release(d)
		return notifier.Target{}, err
	}
	if err := d.CheckHost(); err != nil {
		s.sender.Release(d)
		return notifier.Target{}, err
	}
	return notifier.Target{Destination: d, Tags: e.Tags}, nil
}

// fetch fetches a configuration that a saved one includes.
func (s *savedKeys) fetch(ctx context.Context, location string) ([]byte, error) {
	if !s.Include {
		return nil, errSavedInclude
	}
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("saved configurations can include others by http or https address only")
	}
	resp, err := s.sender.Pool().Get(ctx, u, egress.Options{Policy: s.policy, FollowRedirects: true})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return readLimited(resp.Body)
}
