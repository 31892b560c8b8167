package api

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"sync"
)

// The parts that all HTML pages of the gateway share.
var (
	//go:embed page_head.html
	pageHead string
	//go:embed page.css
	pageCSS string
)

// PageStyle is the source of the pages' style sheet in a Content Security
// Policy.
var PageStyle = CSPHash(pageCSS)

// NewPageTemplate returns a function that returns the template of an HTML page,
// which it parses at its first call. The parts define templates that the page
// uses. The template "head", which gets the title of the page, is the content of
// its head with the style sheet. The function panics if a text is not a template.
func NewPageTemplate(name, text string, parts ...string) func() *template.Template {
	return sync.OnceValue(func() *template.Template { return parsePage(name, text, parts) })
}

func parsePage(name, text string, parts []string) *template.Template {
	t := template.Must(template.New("head").Parse(pageHead + "<style>" + pageCSS + "</style>\n"))
	for _, part := range parts {
		template.Must(t.Parse(part))
	}
	return template.Must(t.New(name).Parse(text))
}

// CSPHash returns the source for an inline script or style sheet with this text
// in a Content Security Policy (CSP Level 3, section 2.3.1).
func CSPHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
