package caddyhttp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

var requestPlaceholder = regexp.MustCompile(`\{(http|vars)\.[^{}]*\}`)

// placeholder is what stands in braces as a placeholder does. Braces with
// quotes or spaces in them are some other language's.
var placeholder = regexp.MustCompile(`\{([^{}\s"']+)\}`)

// eachPlaceholder calls f with the name of each placeholder of a text until
// there is an error. {{x}} and \{x} are none.
func eachPlaceholder(text string, f func(name string) error) error {
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

// isOutside says whether a placeholder's value comes from outside of Caddy, so
// that it is known where the configuration runs, but not where it is adapted.
func isOutside(name string) bool {
	return strings.HasPrefix(name, "env.") || strings.HasPrefix(name, "file.")
}

// checkPlaceholders refuses placeholders that have no value when the
// configuration loads. Those that have one while a request is handled are told
// apart: the Caddyfile makes such a one of {file.token}. What is misspelt, or
// was left as the documentation has it, would go into the URL as it stands, and
// messages to nowhere.
func checkPlaceholders(text string) error {
	if p := requestPlaceholder.FindString(text); p != "" {
		return fmt.Errorf("the placeholder %s has no value when the configuration loads; use {env.NAME}, or {file./path} with a path that begins with a slash", p)
	}
	known := caddy.NewReplacer()
	return eachPlaceholder(text, func(name string) error {
		if isOutside(name) {
			return nil // checkValues tells of what does not exist
		}
		if _, ok := known.Get(name); !ok {
			// Somebody may have put a secret in braces: it is not shown.
			return errors.New("something in braces is no placeholder; use {env.NAME} or {file./path}, and in a URL %7B for a brace that is meant")
		}
		return nil
	})
}

// checkValues refuses placeholders of variables that are not set and of files
// that are not there. Caddy itself takes both for empty.
func checkValues(text string) error {
	return eachPlaceholder(text, func(name string) error {
		if variable, ok := strings.CutPrefix(name, "env."); ok {
			if _, set := os.LookupEnv(variable); !set {
				return fmt.Errorf("{%s} is not set: there is no such environment variable", name)
			}
		}
		if path, ok := strings.CutPrefix(name, "file."); ok {
			f, err := os.Open(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("{%s} is missing: there is no such file", name)
			case err != nil:
				return fmt.Errorf("{%s} cannot be read: %w", name, errs.WithoutPath(err))
			}
			return f.Close()
		}
		return nil
	})
}

// resolve puts the values of placeholders into an operator's URL or path.
func resolve(text string) (string, error) {
	if err := checkPlaceholders(text); err != nil {
		return "", err
	}
	if err := checkValues(text); err != nil {
		return "", err
	}
	return caddy.NewReplacer().ReplaceOrErr(text, true, false)
}

// resolveURL is resolve for what must be one notification URL.
func resolveURL(text string) (string, error) {
	text, err := resolve(text)
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text) // a file ends with a line break, or several
	return text, checkOneURL(text)
}

// checkOneURL refuses a list of URLs where one is expected. Everything behind
// the first comma would be taken for a part of the first URL.
func checkOneURL(text string) error {
	switch {
	case len(api.SplitURLs(text)) > 1:
		return errSeveralURLs
	case strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl):
		return errors.New("there is a line break or another control character within the URL")
	}
	return nil
}

var errSeveralURLs = errors.New("this holds several URLs; write one URL per url line, or per argument elsewhere, and %2C for a comma that is part of a URL")

// A placeholderScope says which placeholders a text of the operator's may have besides
// the global ones.
type placeholderScope struct {
	what string // whose text it is, for errors
	has  func(name string) bool
	hint string // what to use
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

// checkWhole does what checkText does, and refuses placeholders that have no
// value where the configuration runs.
func checkWhole(text string, s placeholderScope) error {
	if err := checkText(text, s); err != nil {
		return err
	}
	return checkValues(text)
}

// placeholderName is what a placeholder of a text is called. What else stands
// in braces, such as a rule of a style sheet, is text.
var placeholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./*-]*$`)

// checkText refuses placeholders that never have a value in a text: they would
// be sent as they stand.
func checkText(text string, s placeholderScope) error {
	known := caddy.NewReplacer()
	return eachPlaceholder(text, func(name string) error {
		if !placeholderName.MatchString(name) || isOutside(name) || s.has(name) {
			return nil
		}
		if _, ok := known.Get(name); ok {
			return nil
		}
		return fmt.Errorf(`the placeholder {%s} has no value in %s; use %s, and \{ for a brace that is meant`, name, s.what, s.hint)
	})
}
