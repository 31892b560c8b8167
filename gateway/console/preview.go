package console

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// servePreview writes the message of r as an HTML destination shows it, or returns the response to
// an invalid request.
func (h *sendPages) servePreview(w http.ResponseWriter, r *http.Request, to *httpapi.Lookup) *api.Response {
	if !h.Resolved.Page {
		return api.Errorf(http.StatusForbidden, "the preview is part of the page, which is turned off here").Response()
	}
	if err := h.api.Sender.CheckRoute(r, to); err != nil {
		return h.ErrorResponse(r, err)
	}
	if err := h.CheckOrigin(r); err != nil {
		return h.ErrorResponse(r, err)
	}
	// A preview is not an alert, so it counts like a message without a key.
	e, err := h.Shared.InFlight.EnterClient(h.Resolved.Limits.InFlight, httpapi.ClientAddress(r))
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	defer e.Leave()
	p, err := h.preview(w, r)
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := view.Write(w, r, http.StatusOK, view.Frame{}, p); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

// preview reads the message of r and returns its preview.
func (h *sendPages) preview(w http.ResponseWriter, r *http.Request) (p view.PreviewPage, err error) {
	q, err := api.Read(w, r, h.api.Sender.Limits(true))
	if err != nil {
		return p, err
	}
	defer q.Close()
	m, err := q.Draft()
	if err != nil {
		return p, err
	}
	if name, payload := q.FormField("source"), q.FormField("payload"); name != "" {
		if m, p.Note, err = h.previewPayload(r.Context(), name, payload); err != nil {
			return p, err
		}
	}
	p.Title, p.Body = m.Title, template.HTML(markup.Convert(m.Body, m.Format, markup.HTML))
	return p, nil
}

// previewPayload returns the message that a source makes from a payload, and its
// type, tags and warnings as a text.
func (h *sendPages) previewPayload(ctx context.Context, name, payload string) (m *notifier.Message, note string, err error) {
	s, err := h.Sources.Get(name)
	if err != nil {
		return nil, "", err
	}
	if s == nil {
		return nil, "", httpapi.SourceError(h.Sources.Missing(name, h.Resolved.Protected(ctx)))
	}
	got, err := s.Read(ctx, &source.Request{
		Header: http.Header{"Content-Type": {"application/json"}}, Query: url.Values{},
		Body: []byte(payload), Time: time.Now(),
	})
	if err != nil {
		return nil, "", httpapi.SourceError(err)
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
	body := got.Dialect.Convert(got.Body, markup.Markdown, time.UTC)
	return &notifier.Message{Title: got.Title, Body: body, Format: format}, strings.Join(parts, " · "), nil
}
