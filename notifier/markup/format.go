package markup

import (
	"errors"
	"strings"
)

// Format is the markup language of a text.
type Format string

// The formats of a text. The zero Format counts as [Text].
const (
	Text     Format = "text"
	Markdown Format = "markdown"
	HTML     Format = "html"
)

// ParseFormat returns the format with the given name, in any case and with
// white space around it. The empty name means [Text]. An error is returned if
// there is no such format; it lists the names.
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimSpace(name))); f {
	case "":
		return Text, nil
	case Text, Markdown, HTML:
		return f, nil
	}
	return "", errors.New("unknown format; use text, markdown or html")
}
