// Package placeholder replaces Caddy's placeholders in the operator's settings
// when the configuration loads, and finds those that can never have a value.
// Text of clients is never passed to it.
package placeholder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// requestPlaceholder matches placeholders that have a value only while a
// request is handled.
var requestPlaceholder = lazyregexp.New(`\{(http|vars)\.[^{}]*\}`)

// placeholder matches a placeholder. Braces around quotes or spaces belong to
// another language.
var placeholder = lazyregexp.New(`\{([^{}\s"']+)\}`)

// Each calls f with the name of each placeholder in text until f returns an
// error. It skips {{x}} and \{x}.
func Each(text string, f func(name string) error) error {
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

// IsWhole reports whether text is one placeholder and nothing else.
func IsWhole(text string) bool { return placeholder.FindString(text) == text && text != "" }

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

// Check returns an error if a placeholder of text has no value when the
// configuration loads. Such a placeholder would stay in the URL, and messages
// would be sent to the wrong address. The Caddyfile adapter turns {file.token}
// into a placeholder of requests, so those have a separate error.
func Check(text string) error {
	if !strings.Contains(text, "{") {
		return nil
	}
	if p := requestPlaceholder.FindString(text); p != "" {
		return fmt.Errorf("the placeholder %s has no value when the configuration loads; "+
			"use {env.NAME}, or {file./path} with a slash after the dot", p)
	}
	if err := checkClosed(text); err != nil {
		return err
	}
	known := caddy.NewReplacer()
	return Each(text, func(name string) error {
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
	return Each(text, func(name string) error {
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

// Resolve replaces the placeholders in a text of the operator, such as a path.
func Resolve(text string) (string, error) {
	if err := Check(text); err != nil {
		return "", err
	}
	if err := checkValues(text); err != nil {
		return "", err
	}
	return caddy.NewReplacer().ReplaceOrErr(text, true, false)
}

// Scope describes which placeholders a text of the operator may
// have in addition to the global ones.
type Scope struct {
	Text    string                 // a description of the text, for errors
	Has     func(name string) bool // reports whether the text may have the placeholder
	Allowed string                 // examples, for errors
}

// CheckTextAndValues is CheckText, and also returns an error if an environment
// variable is not set or a file does not exist.
func CheckTextAndValues(text string, s Scope) error {
	if err := CheckText(text, s); err != nil {
		return err
	}
	return checkValues(text)
}

// validName matches the names of placeholders. Other text in braces, such as a
// rule of a style sheet, is left as it is.
var validName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_./*-]*$`)

// IsName reports whether a text in braces can be the name of a placeholder.
func IsName(text string) bool { return validName.MatchString(text) }

// CheckText returns an error if a placeholder in text can never have a value,
// because it would be sent unreplaced.
func CheckText(text string, s Scope) error {
	if err := checkClosed(text); err != nil {
		return err
	}
	known := caddy.NewReplacer()
	return Each(text, func(name string) error {
		if !IsName(name) || isExternal(name) || s.Has(name) {
			return nil
		}
		if _, ok := known.Get(name); ok {
			return nil
		}
		return fmt.Errorf(`the placeholder {%s} has no value in %s; use %s, and \{ for a literal brace`, name, s.Text, s.Allowed)
	})
}
