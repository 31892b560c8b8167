package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "datadog",
		Program: "Datadog",
		Doc:     "https://docs.datadoghq.com/integrations/webhooks/",
		Checked: "read 2026-11-23",
		// Datadog's default payload, unlike the one in docs/program-setups.md, has neither the
		// state nor a value that is the same in all messages about an alert.
		Has: []string{"alert_transition|event_type", "event_title|title|alert_title", "alert_cycle_key|alert_id|last_updated|org.id"},
		Templates: source.Templates{
			Title: `{{ default (default .alert_title .title) .event_title }}`,
			// Datadog encloses Markdown with %%%.
			Body: `{{ with default .body (default .event_msg .text) }}{{ cut 3000 (trim (replace "%%%" "" .)) }}
{{ end }}
{{- with .alert_status }}{{ if not (hasPrefix "$" .) }}{{ . }}
{{ end }}{{ end }}
{{- with .alert_scope }}{{ if not (hasPrefix "$" .) }}Scope: {{ . }}
{{ end }}{{ end }}
{{- with .hostname }}{{ if not (or (hasPrefix "$" .) (contains . $.alert_scope)) }}Host: {{ . }}
{{ end }}{{ end }}
{{- with .alert_priority }}{{ if not (hasPrefix "$" .) }}Priority: {{ . }}
{{ end }}{{ end }}
{{- with default .org_name .org.name }}{{ if not (hasPrefix "$" .) }}Organization: {{ . }}
{{ end }}{{ end }}
{{- with .link }}{{ if hasPrefix "http" . }}{{ . }}{{ end }}{{ end }}`,
			// Without a transition, the title begins with the state: [Triggered on {host:db1}] …
			Type: `{{ $state := .alert_transition -}}
{{ if not $state }}{{ $state = index (split " on " (index (split "]" (replace "[" "" (default .title .event_title))) 0)) 0 }}{{ end -}}
{{ if eq $state "Renotify" }}{{ default "warning" (type .alert_type) }}
{{- else if type $state }}{{ type $state }}{{ else }}{{ default "info" (type .alert_type) }}{{ end }}`,
			Images: `{{ .snapshot }}`,
			Incident: `{{ if and .alert_cycle_key (not (hasPrefix "$" .alert_cycle_key)) }}{{ .alert_cycle_key }}{{ else if .alert_id }}{{ ` +
				`.alert_id }} {{ .alert_scope }}{{ end }}`,
		},
	})
}
