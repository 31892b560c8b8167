package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "google_cloud_monitoring",
		Program: "Google Cloud Monitoring",
		Doc:     "https://cloud.google.com/monitoring/support/notification-options#webhooks",
		Checked: "1.2, read 2026-11-23",
		Has:     []string{"incident.incident_id", "incident.policy_name|incident.condition_name|incident.summary", "version?"},
		Templates: source.Templates{
			Title: `{{ $i := .incident -}}
{{ if eq (lower $i.state) "closed" }}Closed{{ else }}Open{{ end }}: {{ default (default "incident" $i.condition_name) $i.policy_name }}
{{- with default $i.resource_name $i.resource_display_name }} on {{ cut 100 . }}{{ end }}`,
			// In a test message, documentation is a text.
			Body: `{{ $i := .incident -}}
{{ with $i.summary }}{{ . }}
{{ end }}
{{- with $i.documentation.content }}{{ cut 2000 . }}
{{ else }}{{ if not (hasPrefix "{" (print $i.documentation)) }}{{ with $i.documentation }}{{ cut 2000 . }}
{{ end }}{{ end }}{{ end }}
{{- with $i.condition_name }}{{ if ne . $i.policy_name }}Condition: {{ . }}
{{ end }}{{ end }}
{{- if not $i.summary }}{{ with $i.observed_value }}Value: {{ . }}{{ with $i.threshold_value }} (threshold: {{ . }}){{ end }}
{{ end }}{{ end }}
{{- with $i.severity }}Severity: {{ . }}
{{ end }}
{{- with $i.scoping_project_id }}Project: {{ . }}
{{ end }}
{{- if and $i.started_at $i.ended_at }}From {{ date "2006-01-02 15:04 MST" $i.started_at }} to {{ date "2006-01-02 15:04 MST" $i.ended_at }}
{{ end }}
{{- $i.url }}`,
			// A policy need not have a severity.
			Type: `{{ $i := .incident -}}
{{ if eq (lower $i.state) "closed" }}success{{ else if eq (lower $i.severity) "warning" }}warning{{ else }}failure{{ end }}`,
			Incident: `{{ .incident.scoping_project_id }} {{ .incident.incident_id }}`,
		},
	})
}
