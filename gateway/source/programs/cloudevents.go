package programs

import (
	"bytes"
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/charset"
)

func init() {
	source.Register(source.Format{
		Name:      "cloudevents",
		Program:   "CloudEvents",
		Doc:       "https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md",
		Checked:   "1.0.2 and the working draft of 2026-07-23",
		Has:       []string{"specversion|events[].specversion|[].specversion", "type|events[].type|[].type"},
		Header:    "Ce-Specversion",
		Tokens:    []source.TokenPlace{{Query: "access_token"}},
		Handshake: true,
		Payload:   readCloudEvents,
		Templates: source.Templates{
			Title: `{{ if .events }}{{ $first := index .events 0 }}{{ default "CloudEvent" $first.type }}{{ with more 1 .events }} and {{ .
	}} more{{ end }}
{{- else }}{{ default "CloudEvent" .type }}{{ end }}`,
			Body: `{{- define "event" -}}
{{ with default (default (default (print .data) .data.text) .data.msg) .data.message }}{{ if ne . "{}" }}{{ cut 2000 . }}
{{ end }}{{ end }}
{{- with .source }}Source: {{ . }}
{{ end }}
{{- with .subject }}Subject: {{ . }}
{{ end }}
{{- end -}}
{{ if .events }}{{ range first 10 .events }}{{ .type }}
{{ template "event" . }}
{{ end }}{{ with more 10 .events }}and {{ . }} more{{ end }}
{{- else }}{{ template "event" . }}{{ end }}`,
			Type: `{{ $data := .data }}{{ if .events }}{{ $first := index .events 0 }}{{ $data = $first.data }}{{ end -}}
{{ type (default (default (default $data.status $data.state) $data.level) $data.severity) }}`,
		},
	})
}

// isEvent reports whether v is an event of the structured mode.
func isEvent(v any) bool { return payload.Get(v, "specversion") != nil }

// readCloudEvents returns an event of any content mode as an object of the structured
// mode. It returns a batch as an object with the member events.
func readCloudEvents(r *source.Request) (any, error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	text := bytes.TrimSpace(r.Text())
	if r.Form != nil {
		return source.FormFields(r.Form), nil
	}
	structured := strings.HasPrefix(media, "application/cloudevents")
	data, err := payload.Decode(text)
	if err != nil && (structured || r.Header.Get("Ce-Type") == "") {
		return nil, source.Errorf(http.StatusBadRequest, "the payload of CloudEvents must be JSON: %w", err)
	}
	// some producers declare a batch as JSON
	if events, ok := data.([]any); ok && (strings.HasPrefix(media, "application/cloudevents-batch") || slices.ContainsFunc(events, isEvent)) {
		for _, e := range events {
			decodeEventData(e)
		}
		return map[string]any{"events": events}, nil
	}
	if event, ok := data.(map[string]any); ok && (structured || event["specversion"] != nil) {
		decodeEventData(event)
		return event, nil
	}
	if err != nil && charset.IsText(r.Body, charset.OfType(r.Header.Get("Content-Type"))) {
		data = string(text)
	}
	event := map[string]any{}
	for name, values := range r.Header {
		if attribute, ok := strings.CutPrefix(name, "Ce-"); ok && len(values) > 0 {
			event[strings.ToLower(attribute)] = eventAttribute(values[0])
		}
	}
	if data = payload.Or(data, nil); data != nil {
		event["data"] = data
	}
	return event, nil
}

// decodeEventData replaces data_base64 of an event by data, if the encoded bytes are
// text.
func decodeEventData(v any) {
	event, _ := v.(map[string]any)
	encoded, ok := event["data_base64"].(string)
	if !ok {
		return
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	declared := charset.OfType(payload.Text(event["datacontenttype"]))
	if err != nil || !charset.IsText(raw, declared) {
		return
	}
	raw, _ = charset.Decode(raw, declared)
	event["data"] = string(raw)
	if data, err := payload.Decode(raw); err == nil && data != nil {
		event["data"] = data
	}
	delete(event, "data_base64")
}

// eventAttribute decodes an attribute in a header of the binary mode. The value is
// percent-encoded and may be quoted.
func eventAttribute(s string) string {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s[1 : len(s)-1])
	}
	if decoded, err := url.PathUnescape(s); err == nil {
		s = decoded
	}
	s, _ = charset.DecodeHeader(s)
	return s
}
