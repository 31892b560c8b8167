package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "uptimerobot",
		Program: "UptimeRobot",
		Doc:     "https://help.uptimerobot.com/en/articles/14498593-webhook-integration",
		// The names of the variables come from UptimeRobot's Terraform provider at this date, and
		// the values from received messages.
		Checked: "2026-08-20",
		Has:     []string{"monitorFriendlyName|monitorURL", "alertType|alertTypeFriendlyName|monitorStatusFullName"},
		Templates: source.Templates{
			// UptimeRobot leaves the name of a variable, such as *sslExpiryDate* or $sslExpiryDate,
			// in place of a missing value.
			Title: `{{ $state := default .monitorStatusFullName .alertTypeFriendlyName -}}
{{ default "A monitor" .monitorFriendlyName }}
{{- if eq .alertType 3 }}: {{ default "certificate or domain" $state }}
{{- else if eq .alertType 1 2 }} is {{ if eq .alertType 1 }}{{ lower (default "down" $state) }}{{ else }}{{ lower (default "up" $state)
	}}{{ end }}
{{- else }} is {{ lower (default (default "unknown" .alertType) $state) }}{{ end }}`,
			Body: `{{ with .alertDetails }}{{ if not (or (hasPrefix "*" .) (hasPrefix "$" .)) }}{{ . }}
{{ end }}{{ end }}
{{- with .alertDuration }}{{ if not (or (eq . "0") (hasPrefix "*" .) (hasPrefix "$" .)) }}After {{ duration . }}
{{ end }}{{ end }}
{{- with .sslExpiryDate }}{{ if not (or (hasPrefix "*" .) (hasPrefix "$" .)) }}Certificate expires: {{ . }}
{{ end }}{{ end }}
{{- with .domainExpireDate }}{{ if not (or (hasPrefix "*" .) (hasPrefix "$" .)) }}Domain expires: {{ . }}
{{ end }}{{ end }}
{{- .monitorURL }}`,
			Type: `{{ if eq .alertType 1 }}failure{{ else if eq .alertType 2 }}success{{ else if eq .alertType 3 }}warning{{ else }}{{ type ` +
				`(default .alertType .alertTypeFriendlyName) }}{{ end }}`,
			Incident: `{{ with .monitorID }}{{ . }}{{ if eq $.alertType 3 }} expiry{{ end }}{{ end }}`,
		},
	})
}
