package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "grafana",
		Program: "Grafana",
		Doc:     "https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/",
		Checked: "2026-08-06",
		Has:     []string{"alerts|evalMatches", "title|orgId|state|alerts[].valueString"},
		Reads:   []string{"alertmanager"},
		Scheme:  source.SchemeGrafana,
		Templates: source.Templates{
			Title: `{{ default ` + alertsTitle + ` .title }}`,
			// Grafana 10 and older can send alerts of the former alerting, which have evalMatches.
			Body: `{{- if .ruleUrl }}{{ with .message }}{{ . }}
{{ end }}{{ range first 20 .evalMatches }}{{ .metric }}: {{ .value }}
{{ end }}{{ with more 20 .evalMatches }}and {{ . }} more
{{ end }}{{ .ruleUrl }}
{{- else if .message }}{{ .message }}{{ with .truncatedAlerts }}
{{ end }}` + alertsLeftOut + `{{ else }}` + alertsList + `{{- $first := index .alerts 0 -}}
{{- default (default .externalURL $first.generatorURL) (default $first.dashboardURL $first.panelURL) }}{{ end }}`,
			Type:   `{{ if .ruleUrl }}{{ type .state }}{{ else }}` + alertsType + `{{ end }}`,
			Tag:    alertsTag,
			Format: `{{ if and .message (not .ruleUrl) }}markdown{{ end }}`,
			Images: `{{ range first 3 .alerts }}{{ .imageURL }}
{{ end }}{{ .imageUrl }}`,
			// A group is resolved when all its listed alerts are.
			Incident: `{{ if .ruleUrl }}{{ .ruleUrl }}{{ else if .groupKey }}{{ .externalURL }} {{ .groupKey }}{{ end }}`,
			Alerts:   alertsOpen,
			Partial:  alertsPartial,
		},
	})
}
