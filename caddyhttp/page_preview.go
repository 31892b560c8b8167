package caddyhttp

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The preview of a message, which the page shows in a frame.
var (
	//go:embed page_preview.html
	previewHTML string
	//go:embed page_preview.css
	previewCSS string

	previewTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("preview").Parse(previewHTML))
	})
)

// previewPolicy is the Content Security Policy of the preview. It allows no
// scripts.
var previewPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'self'; form-action 'none'; img-src data:; sandbox; style-src " + api.CSPHash(previewCSS)

// previewQuery is the whole query string of a POST that asks for a preview of
// its message instead of sending it.
const previewQuery = "preview"

// servePreview writes the message of r as an HTML destination shows it, or
// returns the response to an invalid request.
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
	note := ""
	if name, payload := q.FormField("source"), q.FormField("payload"); name != "" {
		if m, note, err = h.previewPayload(name, payload); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	err = previewTemplate().Execute(&b, struct {
		CSS   template.CSS
		Title string
		Note  string        // about the message of a payload
		Body  template.HTML // scripts in it do not run: see previewPolicy
	}{template.CSS(previewCSS), m.Title, note, template.HTML(markup.Convert(m.Body, m.Format, markup.HTML))})
	return b.Bytes(), err
}

// previewPayload returns the message that a source makes from a payload, and its
// type, tags and warnings as a text.
func (h *Handler) previewPayload(name, payload string) (m *notifier.Message, note string, err error) {
	s, err := h.resolved.source(name)
	if err != nil {
		return nil, "", err
	}
	if s == nil {
		return nil, "", errNoSource
	}
	got, err := s.Read(&source.Request{Header: http.Header{"Content-Type": {"application/json"}}, Query: url.Values{}, Body: []byte(payload), Time: time.Now()})
	if err != nil {
		return nil, "", sourceError(err)
	}
	if got.Skip {
		return &notifier.Message{}, "nothing to send", nil
	}
	format, err := markup.ParseFormat(got.Format)
	if err != nil {
		return nil, "", err
	}
	parts := []string{cmp.Or(got.Type, string(notifier.Info))}
	if len(got.Tags) > 0 {
		parts = append(parts, "tags: "+strings.Join(got.Tags, ", "))
	}
	parts = append(parts, got.Warnings...)
	return &notifier.Message{Title: got.Title, Body: got.Body, Format: format}, strings.Join(parts, " · "), nil
}
