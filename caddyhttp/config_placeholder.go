package caddyhttp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// requestPlaceholder matches placeholders that have a value only while a
// request is handled.
var requestPlaceholder = lazyregexp.New(`\{(http|vars)\.[^{}]*\}`)

// placeholder matches a placeholder. Braces around quotes or spaces belong to
// another language.
var placeholder = lazyregexp.New(`\{([^{}\s"']+)\}`)

// eachPlaceholder calls f with the name of each placeholder in text until f
// returns an error. It skips {{x}} and \{x}.
func eachPlaceholder(text string, f func(name string) error) error {
	if !strings.Contains(text, "{") {
		return nil
	}
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > 0 && strings.IndexByte(`{\`, text[at[0]-1]) >= 0 {
			continue
		}
		if err := f(text[at[2]:at[3]]); err != nil {
			return err
		}
	}
	return nil
}

// openPlaceholder matches a placeholder without a closing brace. Its group
// matches the name if that cannot contain a secret.
var openPlaceholder = lazyregexp.New(`\{(?:(\$\w*|env\.\w+|(?:event|system|time|http|vars)\.[\w.]*)|file\.)[^{}\s"']*(?:[{\s"']|$)`)

// checkClosed returns an error if a placeholder has no closing brace. Such a
// placeholder would stay in the text.
func checkClosed(text string) error {
	for _, at := range openPlaceholder.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > 0 && strings.IndexByte(`{\`, text[at[0]-1]) >= 0 {
			continue
		}
		if at[2] < 0 {
			return errors.New("the placeholder {file.… has no closing brace; write {file./path}")
		}
		name := text[at[2]:at[3]]
		return fmt.Errorf("the placeholder {%s has no closing brace; write {%s}", name, name)
	}
	return nil
}

// isExternal reports whether the value of a placeholder comes from outside of
// Caddy. Such a value exists where the configuration runs, but perhaps not
// where it is adapted.
func isExternal(name string) bool {
	return strings.HasPrefix(name, "env.") || strings.HasPrefix(name, "file.")
}

// checkPlaceholders returns an error if a placeholder has no value when the
// configuration loads. Such a placeholder would stay in the URL, and messages
// would be sent to the wrong address. The Caddyfile adapter turns {file.token}
// into a placeholder of requests, so those have a separate error.
func checkPlaceholders(text string) error {
	if !strings.Contains(text, "{") {
		return nil
	}
	if p := requestPlaceholder.FindString(text); p != "" {
		return fmt.Errorf("the placeholder %s has no value when the configuration loads; use {env.NAME}, or {file./path} with a slash after the dot", p)
	}
	if err := checkClosed(text); err != nil {
		return err
	}
	known := caddy.NewReplacer()
	return eachPlaceholder(text, func(name string) error {
		if isExternal(name) {
			return nil // see checkValues
		}
		if _, ok := known.Get(name); !ok {
			// The text is not shown, because it may be a secret in braces.
			return errors.New("the text in braces is not a placeholder; use {env.NAME} or {file./path}, and in a URL %7B for a literal brace")
		}
		return nil
	})
}

// checkValues returns an error if an environment variable is not set or a file
// does not exist. Caddy would replace both with an empty text.
func checkValues(text string) error {
	return eachPlaceholder(text, func(name string) error {
		if variable, ok := strings.CutPrefix(name, "env."); ok {
			if _, set := os.LookupEnv(variable); !set {
				return fmt.Errorf("{%s} has no value: there is no such environment variable; set it, or correct the name", name)
			}
		}
		if path, ok := strings.CutPrefix(name, "file."); ok {
			f, err := os.Open(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("{%s} has no value: there is no such file; create it, or correct the path", name)
			case err != nil:
				return fmt.Errorf("{%s} cannot be read: %w", name, errs.WithoutPath(err))
			}
			return f.Close()
		}
		return nil
	})
}

// resolvePlaceholders replaces the placeholders in an operator's URL or path.
func resolvePlaceholders(text string) (string, error) {
	if err := checkPlaceholders(text); err != nil {
		return "", err
	}
	if err := checkValues(text); err != nil {
		return "", err
	}
	return caddy.NewReplacer().ReplaceOrErr(text, true, false)
}

// checkSingleURL returns an error if text is a list of URLs. Otherwise
// everything after the first comma would be a part of the first URL.
func checkSingleURL(text string) error {
	switch {
	case len(api.SplitURLs(text)) > 1:
		return errSeveralURLs
	case strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl):
		return errControlInURL
	}
	return nil
}

var errControlInURL = errors.New("the URL has a line break or another control character in it; remove it")

var errSeveralURLs = errors.New("this holds several URLs; write one URL per url line or argument, and %2C for a comma within a URL")

// placeholderScope describes which placeholders a text of the operator may
// have in addition to the global ones.
type placeholderScope struct {
	text    string // a description of the text, for errors
	has     func(name string) bool
	allowed string // examples, for errors
}

var (
	eventPlaceholders = placeholderScope{"a message about an event", isEventPlaceholder, "{event.name}, {event.data.<name>}, {system.hostname} or {env.NAME}"}
	logPlaceholders   = placeholderScope{"a message about log entries", func(string) bool { return false }, "{system.hostname} or {env.NAME}"}
)

func isEventPlaceholder(name string) bool {
	switch name {
	case "event", "event.id", "event.name", "event.time", "event.time_unix", "event.module", "event.data":
		return true
	}
	return strings.HasPrefix(name, "event.data.")
}

// checkTextAndValues calls checkText and checkValues.
func checkTextAndValues(text string, s placeholderScope) error {
	if err := checkText(text, s); err != nil {
		return err
	}
	return checkValues(text)
}

// placeholderName matches the names of placeholders. Other text in braces, such
// as a rule of a style sheet, is left as it is.
var placeholderName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_./*-]*$`)

// checkText returns an error if a placeholder in text can never have a value,
// because it would be sent unreplaced.
func checkText(text string, s placeholderScope) error {
	if err := checkClosed(text); err != nil {
		return err
	}
	known := caddy.NewReplacer()
	return eachPlaceholder(text, func(name string) error {
		if !placeholderName.MatchString(name) || isExternal(name) || s.has(name) {
			return nil
		}
		if _, ok := known.Get(name); ok {
			return nil
		}
		return fmt.Errorf(`the placeholder {%s} has no value in %s; use %s, and \{ for a literal brace`, name, s.text, s.allowed)
	})
}
