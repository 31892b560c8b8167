package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "netdata",
		Program: "Netdata",
		Doc:     "https://learn.netdata.cloud/docs/alerts-&-notifications/notifications/centralized-cloud-notifications/webhook",
		Checked: "2.11.0",
		// Netdata Cloud has the fields alert and severity, or host and status.reachable;
		// custom_sender of an agent posts alarm and status. The test of Netdata Cloud has a
		// token that its user must copy.
		Has: []string{"alert|alarm|status.reachable|token", "severity|status|title", "space|chart|host|message"},
		Templates: source.Templates{
			Title: `{{ if .token }}{{ default "Netdata" .title }}
{{- else if .status.text }}{{ .host }} is {{ .status.text }}
{{- else }}{{ default .alarm .alert }}{{ with .host }} on {{ . }}{{ end }} is {{ lower (default .status .severity) }}{{ end }}`,
			Body: `{{ with .message }}{{ . }}
{{ end }}
{{- with .token }}Token: {{ . }}
{{ end }}
{{- with .info }}{{ if not (contains . $.message) }}{{ . }}
{{ end }}{{ end }}
{{- with .value }}Value: {{ . }}{{ with $.old_value }} (before: {{ . }}){{ end }}
{{ end }}
{{- with .chart }}Chart: {{ . }}
{{ end }}
{{- with .space }}Space: {{ . }}
{{ end }}
{{- with .duration }}Duration: {{ . }}
{{ end }}
{{- if or .additional_active_critical_alerts .additional_active_warning_alerts }}Also active on the node: {{ default 0
	.additional_active_critical_alerts }} critical, {{ default 0 .additional_active_warning_alerts }} warning
{{ end }}
{{- default (default .alarm_url .alert_url) .url }}`,
			Type: `{{ if .token }}info
{{- else if eq .status.reachable true }}success
{{- else if eq .status.reachable false }}failure
{{- else }}{{ default "info" (type (default .status .severity)) }}{{ end }}`,
			// An alert of Netdata Cloud has no field for its node, so the end of one node's alert
			// looks like another's.
			Incident: `{{ if .status.text }}{{ .host }}
{{- else if and .alarm (not (eq .status "REMOVED" "UNDEFINED" "UNINITIALIZED")) }}{{ .host }} {{ .chart }} {{ .alarm }}{{ end }}`,
		},
	})
}
