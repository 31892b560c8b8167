package saved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// LineError is a mistake in a saved configuration, or a warning about it. It
// does not quote the configuration, which may contain secrets.
type LineError struct {
	Line int // from 1 on; 0 for the configuration as a whole
	url  int // the number of the URL, from 1 on; 0 if it is unknown
	err  error
}

// Error returns the problem with its position.
func (m LineError) Error() string {
	switch {
	case m.Line == 0:
		return m.err.Error()
	case m.url == 0:
		return fmt.Sprintf("line %d: %v", m.Line, m.err)
	}
	return fmt.Sprintf("URL %d, line %d: %v", m.url, m.Line, m.err)
}

// Unwrap returns the error without its position.
func (m LineError) Unwrap() error { return m.err }

// Text returns the problem without its position, as a client may see it.
func (m LineError) Text() string { return errs.PublicText(m.err) }

// LineErrors are the mistakes in a saved configuration, in the order of their
// lines. There is at least one.
type LineErrors []LineError

// Error returns the first mistake.
func (m LineErrors) Error() string { return m[0].Error() }

// Unwrap returns the first mistake, because Error returns its text.
func (m LineErrors) Unwrap() error { return m[0] }

// newLineError returns a mistake in a line of the configuration. If include is
// not 0, the mistake is in a file, which line include of the configuration
// includes.
func newLineError(line, include int, err error) LineError {
	if include == 0 {
		return LineError{Line: line, err: err}
	}
	if line > 0 {
		err = fmt.Errorf("the included file, line %d: %w", line, err)
	}
	return LineError{Line: include, err: err}
}

// sortMistakes sorts mistakes by line.
func sortMistakes(m []LineError) {
	slices.SortStableFunc(m, func(a, b LineError) int { return cmp.Compare(a.Line, b.Line) })
}

// errSavedInclude is returned for a saved configuration that includes another while include is off.
var errSavedInclude = errors.New("saved configurations cannot include others here; write the URLs into this one")

// parser makes keys of configurations, under the rules of the site and of its space.
type parser struct{ keys *Keys }

// entries returns the entries of a saved configuration. fetch returns the
// content of an address that it includes.
func (s parser) entries(ctx context.Context, format, text string,
	fetch func(context.Context, string) ([]byte, error),
) (entries []appriseconfig.Entry, mistakes, warnings []LineError) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ImportTimeout)
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
			mistakes = append(mistakes, newLineError(e.Line, e.Include, cmp.Or(e.Err, errors.New(e.Problem))))
		}
	}
	for _, w := range ignored {
		if w.Line > 0 && w.Include == 0 {
			warnings = append(warnings, LineError{Line: w.Line, err: errors.New(w.Problem)})
		}
	}
	return entries, mistakes, warnings
}

// parse returns the key of a saved configuration. The caller must release its destinations.
// fetch fetches what the configuration includes. A URL of a retired service is left out with
// a warning. The error is of type [LineErrors].
func (s parser) parse(ctx context.Context, name, format, text string, fetch func(context.Context, string) ([]byte, error)) (*site.Key,
	[]LineError, error,
) {
	entries, mistakes, warnings := s.entries(ctx, format, text, fetch)
	numbered := len(mistakes) == 0 // entries with mistakes are missing
	entries, mistakes = s.limit(entries, mistakes)
	var retired []LineError // about URLs of retired services
	k := s.newKey(name)
	for i, e := range entries {
		t, err := s.keys.Target(e)
		if err == nil {
			for _, w := range t.Warnings() {
				warnings = append(warnings, newLineError(e.Line, e.Include, errors.New(w)))
			}
			k.Targets = append(k.Targets, t)
			continue
		}
		m := newLineError(e.Line, e.Include, err)
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
	case len(mistakes) > 0 || len(k.Targets) > 0:
		warnings = append(warnings, retired...)
	case len(retired) > 0:
		mistakes = retired // no URL is left
	default:
		mistakes = []LineError{{err: errNoSavedURL}}
	}
	sortMistakes(mistakes)
	sortMistakes(warnings)
	if len(mistakes) > 0 {
		s.keys.releaseTargets(k)
		return nil, warnings, LineErrors(mistakes)
	}
	k.DefaultTargets = s.keys.defaults.Choose(k.Targets)
	return k, warnings, nil
}

var errNoSavedURL = errors.New("the configuration has no notification URL; add one")

func (s parser) newKey(name string) *site.Key {
	return &site.Key{
		Name: name, Saved: true, Space: s.keys.Shared.name, Limits: s.keys.Limits, KeySettings: s.keys.KeySettings,
		Defaults: s.keys.defaults, Log: s.keys.Log.WithLazy(zap.String("key", name)),
	}
}

// limit returns the first MaxURLs entries, with a mistake if there are more.
func (s parser) limit(entries []appriseconfig.Entry, mistakes []LineError) ([]appriseconfig.Entry, []LineError) {
	if len(entries) <= s.keys.MaxURLs {
		return entries, mistakes
	}
	e := entries[s.keys.MaxURLs]
	err := fmt.Errorf("the configuration has %d URLs; at most %d are allowed (max_urls)", len(entries), s.keys.MaxURLs)
	return entries[:s.keys.MaxURLs], append(mistakes, newLineError(cmp.Or(e.Include, e.Line), 0, err))
}

// load returns the key of a stored configuration, for messages. The caller must release its
// destinations. The configuration was correct when it was saved, but the settings of the site may
// have changed since. An entry that cannot be used becomes a destination whose deliveries fail with
// the reason. An error is returned only if an included configuration cannot be fetched.
func (s parser) load(ctx context.Context, name, format, text string) (*site.Key, error) {
	var failed error
	entries, mistakes, _ := s.entries(ctx, format, text, func(ctx context.Context, location string) ([]byte, error) {
		content, err := s.fetch(ctx, location)
		if _, blocked := errors.AsType[*egress.BlockedError](err); err != nil && !blocked && !errors.Is(err, errSavedInclude) {
			failed = err
		}
		return content, err
	})
	if failed != nil {
		return nil, failed
	}
	entries, mistakes = s.limit(entries, mistakes)
	k := s.newKey(name)
	retired := 0
	for _, e := range entries {
		t, err := s.use(e)
		if u, ok := errors.AsType[*notifier.URLError](err); ok && u.Retired {
			retired++
			continue
		}
		if err != nil {
			k.Log.Warn("a saved URL cannot be used; messages for it fail", zap.Error(newLineError(e.Line, e.Include, err)))
			t = notifier.Target{Destination: notifier.Unusable(e.URL, s.keys.policy, err), Tags: e.Tags}
			if e.Template != nil {
				t.Destination = notifier.Unfilled(e.URL, s.keys.policy, err)
			}
		}
		k.Targets = append(k.Targets, t)
	}
	if len(k.Targets)+len(mistakes) == 0 {
		mistakes = []LineError{{err: errNoSavedURL}}
		if retired > 0 {
			mistakes[0].err = errors.New("the services of all URLs are retired; replace the URLs")
		}
	}
	for _, m := range mistakes {
		k.Log.Warn("a part of the saved configuration cannot be used; messages for it fail", zap.Error(m))
		k.Targets = append(k.Targets, notifier.Target{Destination: notifier.Unusable("", s.keys.policy, m)})
	}
	k.DefaultTargets = s.keys.defaults.Choose(k.Targets)
	return k, nil
}

// Target returns the target of an entry, or an error if it must not be saved.
func (s *Keys) Target(e appriseconfig.Entry) (notifier.Target, error) {
	t, err := parser{s}.use(e)
	if err != nil {
		return t, err
	}
	if err := t.CheckHost(); err != nil {
		s.Sender.Release(t.Destination)
		return notifier.Target{}, err
	}
	return t, nil
}

// use returns the target of an entry, for messages. Its address is checked when it
// is dialled.
func (s parser) use(e appriseconfig.Entry) (notifier.Target, error) {
	url, policy, err := s.expand(e)
	if err != nil {
		return notifier.Target{}, err
	}
	if e.Template != nil {
		return s.useTemplate(e, url, policy)
	}
	d, err := s.keys.Sender.Parse(url, policy)
	if err != nil {
		return notifier.Target{}, message.WithSuggestion(url, err)
	}
	if err := s.keys.services.Check(d); err != nil {
		s.keys.Sender.Release(d)
		return notifier.Target{}, err
	}
	return notifier.Target{Destination: d, Tags: e.Tags}, nil
}

// fetch fetches a configuration that a saved one includes.
func (s parser) fetch(ctx context.Context, location string) ([]byte, error) {
	if !s.keys.Include {
		return nil, errSavedInclude
	}
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("saved configurations can include others by http or https address only")
	}
	body, err := s.keys.Sender.Pool().Open(ctx, u, egress.Options{Policy: s.keys.policy, FollowRedirects: true})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return appriseconfig.ReadAll(body)
}

// errVariablePart is returned for a variable inside a URL. The client that saves the URL could send
// the value to its own server.
var errVariablePart = errors.New("a variable stands for a whole URL here; write it alone, as in ops=${NAME}")

// expand replaces the variables of a saved URL, except the ones that its template declares. It
// returns the egress policy for the URL: a URL that is one variable comes from the operator.
func (s parser) expand(e appriseconfig.Entry) (string, *egress.Policy, error) {
	if s.keys.Expand == nil {
		return e.URL, s.keys.policy, nil
	}
	expanded, found, whole, err := s.keys.Expand(e.URL, e.Template)
	switch {
	case !found:
		return e.URL, s.keys.policy, nil
	case !s.keys.Trusted && !whole:
		return "", nil, errVariablePart
	}
	return expanded, nil, err
}
