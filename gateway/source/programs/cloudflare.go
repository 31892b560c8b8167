package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "cloudflare",
		Program: "Cloudflare",
		Doc:     "https://developers.cloudflare.com/notifications/reference/webhook-payload-schema/",
		Checked: "2026-04-24",
		// The test message sent when a webhook is saved has only a text.
		Has:    []string{"text", "alert_event|alert_correlation_id|alert_type?", "policy_id|policy_name|account_id?", "ts?"},
		Tokens: []source.TokenPlace{{Header: "Cf-Webhook-Auth"}},
		Templates: source.Templates{
			Title: `{{ if eq .alert_event "ALERT_STATE_EVENT_END" }}Ended: {{ end }}{{ default "Cloudflare" (default .name .policy_name) }}`,
			Body: `{{ .text }}
{{ with .data.zone_name }}{{ if not (contains . $.text) }}Zone: {{ . }}
{{ end }}{{ end }}
{{- with default .data.target_ip .data.target_hostname }}{{ if not (contains . $.text) }}Target: {{ . }}
{{ end }}{{ end }}
{{- with default .data.attack_type .data.attack_vector }}Attack: {{ . }}{{ with $.data.max_rate }}, {{ . }}{{ end }}
{{ end }}
{{- with .data.health_check_name }}{{ if not (contains . $.text) }}Health check: {{ . }}
{{ end }}{{ end }}
{{- with default .data.new_status .data.new_health_status }}Status: {{ . }}{{ with $.data.old_status }} (before: {{ . }}){{ end }}
{{ end }}
{{- with .data.reason }}Reason: {{ . }}
{{ end }}
{{- with .data.failing_regions }}Regions: {{ . }}
{{ end }}
{{- with .data.hostnames }}Host names: {{ join ", " . }}
{{ end }}
{{- with .data.days_til_expiration }}Expires in: {{ . }} days
{{ end }}
{{- with .data.account_name }}Account: {{ . }}
{{ end }}
{{- .data.dashboard_link }}`,
			// Notifications have no severity. For health, the new state says it, and an attack is a
			// failure.
			Type: `{{ if eq .alert_event "ALERT_STATE_EVENT_END" }}success
{{- else if not (or .alert_event .alert_type .policy_id) }}info
{{- else if contains "attack" .alert_type }}failure
{{- else }}{{ default "warning" (type (default .data.new_status .data.new_health_status)) }}{{ end }}`,
			Incident: `{{ if .alert_event }}{{ .alert_correlation_id }}{{ end }}`,
		},
	})
}
