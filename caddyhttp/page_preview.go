package caddyhttp

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The preview of a message, which the page shows in a frame.
var (
	//go:embed page_preview.html
	previewHTML string
	//go:embed page_preview.css
	previewCSS string

	previewTemplate = template.Must(template.New("preview").Parse(previewHTML))
)

// previewPolicy is the Content Security Policy of the preview. It allows no
// scripts.
var previewPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'self'; form-action 'none'; img-src data:; sandbox; style-src " + api.CSPHash(previewCSS)

// previewQuery is the whole query string of a POST that asks for a preview of
// its message instead of sending it.
const previewQuery = "preview"

// servePreview writes the message of r as a destination shows it that takes
// HTML, or returns the response to a wrong request.
func (h *Handler) servePreview(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	if !h.resolved.page {
		return api.Errorf(http.StatusForbidden, "the preview is part of the page, which is turned off here").Response()
	}
	if err := h.checkRoute(r, name); err != nil {
		return h.errorResponse(err)
	}
	if err := h.resolved.checkOrigin(r); err != nil {
		return h.errorResponse(err)
	}
	// A preview is not an alert, so it counts like a message without a key.
	e, err := h.shared.inFlight.enterClient(h.resolved.inFlight, clientAddress(r))
	if err != nil {
		return h.errorResponse(err)
	}
	defer e.leave()
	body, err := h.renderPreview(w, r)
	if err != nil {
		return h.errorResponse(err)
	}
	w.Header().Set("Cache-Control", "no-store")
	writePage(w, r, body, previewPolicy)
	return nil
}

func (h *Handler) renderPreview(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	q, err := api.Read(w, r, h.limits(true))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	m, err := q.Draft()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = previewTemplate.Execute(&b, struct {
		CSS   template.CSS
		Title string
		Body  template.HTML // scripts in it do not run: see previewPolicy
	}{template.CSS(previewCSS), m.Title, template.HTML(markup.Convert(m.Body, m.Format, markup.HTML))})
	return b.Bytes(), err
}
