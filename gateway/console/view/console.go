// Package view has the pages of the gateway: their templates, scripts and
// styles. A page is a struct with what it shows, such as [KeyPage]. It works
// without its scripts.
//
// The package knows nothing of requests, keys or the queue. Its callers fill in
// the structs, and handle what the forms of the pages send.
package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"sync"
)

// A Page is one of the structs of this package whose names end in Page.
type Page interface {
	view() view
}

// view is the data of the layout for a page.
type view struct {
	title string
	parts func() *parts
	data  any  // data of the templates heading and main; by default, the page itself
	wide  bool // it has lists rather than a form
}

// source names the files of a page.
type source struct {
	templates []string
	scripts   []string
	styles    []string // the first is the page's own, and the others belong to frames in it
	policy    string   // the Content-Security-Policy except scripts and styles
	bare      bool     // it has a layout of its own, without a script
}

// parts are the contents of the files of a page.
type parts struct {
	template *template.Template
	style    template.CSS
	scripts  []template.JS
	policy   string // the Content-Security-Policy
}

// What pages may do.
const (
	policyAll      = "default-src 'none'; base-uri 'none'; img-src data:"
	policyApp      = " 'self'; manifest-src 'self'; worker-src 'self'" // after policyAll, for a page that is installed as an app
	policyForms    = "; frame-ancestors 'none'; form-action 'self'; connect-src 'self'"
	policyFrames   = "; frame-src 'self'"
	policyReadOnly = "; frame-ancestors 'none'; form-action 'none'"
	policyFrame    = "; frame-ancestors 'self'; form-action 'none'; sandbox"
)

//go:embed *.html *.css *.js
var files embed.FS

const (
	mainStyle    = "console.css"
	mainScript   = "page.js"
	previewStyle = "preview.css"
)

// layout has the templates that all pages share.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(files, "layout.html", "components.html"))
})

// newParts returns a function that reads the files of a page at its first call.
func newParts(s source) func() *parts {
	return sync.OnceValue(func() *parts {
		p := &parts{template: template.Must(template.Must(layout().Clone()).ParseFS(files, s.templates...))}
		p.policy = policyAll + s.policy
		scripts := s.scripts
		if !s.bare {
			scripts = append([]string{mainScript}, scripts...)
		}
		for i, name := range scripts {
			text := readFile(name)
			p.scripts = append(p.scripts, template.JS(text))
			if i == 0 {
				p.policy += "; script-src"
			}
			p.policy += " " + hashSource(text)
		}
		p.policy += "; style-src"
		for i, name := range s.styles {
			text := readFile(name)
			if i == 0 {
				p.style = template.CSS(text)
			}
			p.policy += " " + hashSource(text)
		}
		return p
	})
}

// readFile returns one of the package's own files.
func readFile(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// hashSource returns the Content-Security-Policy source for an inline script or style sheet with
// this text (CSP Level 3, section 2.3.1).
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Render returns the HTML of a page in its frame, and its Content-Security-Policy. The policy
// allows scripts and styles by their hashes, so that no script in the text of a page can run.
func Render(f Frame, p Page) (html []byte, policy string, err error) {
	v := p.view()
	parts := v.parts()
	if v.data == nil {
		v.data = p
	}
	var b bytes.Buffer
	err = parts.template.ExecuteTemplate(&b, "layout", struct {
		Title   string
		Frame   Frame
		Wide    bool
		Style   template.CSS
		Scripts []template.JS
		Page    any
	}{v.title, f, v.wide, parts.style, parts.scripts, v.data})
	if err != nil {
		return nil, "", err
	}
	return b.Bytes(), parts.policy, nil
}

// Write writes a page in its frame as the response to a request. If it returns an error, it has
// written nothing.
func Write(w http.ResponseWriter, r *http.Request, status int, f Frame, p Page) error {
	html, policy, err := Render(f, p)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	if h.Get("Referrer-Policy") == "" {
		h.Set("Referrer-Policy", "same-origin") // the address contains the key
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(html) // it fails only if the client is gone
	}
	return nil
}

// functions are the functions of the templates.
var functions = template.FuncMap{
	"count":        Count,
	"moment":       NewMoment,
	"word":         Outcome.Word,
	"days":         days,
	"stateWord":    func(s State) string { return stateWords[s] },
	"readableTime": readableTime,
	"exactTime":    exactTime,
	"machineTime":  machineTime,
	"incidentWord": func(s IncidentState) string { return incidentWords[s] },
}

// Count returns "1 URL" or "2 URLs", from a singular and a plural.
func Count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}
