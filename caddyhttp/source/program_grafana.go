package source

func init() {
	register(Format{
		Name:    "grafana",
		Program: "Grafana",
		Doc:     "https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/",
		Scheme:  schemeGrafana,
		Templates: Templates{
			Title: `{{ default (default (default "Alerts" (join ", " (pairs .groupLabels))) (default .commonLabels.alertname .groupLabels.alertname)) .title }}`,
			Body: `{{- define "alert" -}}
	{{- $text := default .labels.alertname .annotations.description -}}
	{{- $text = default $text .annotations.message -}}
	{{- $text = default $text .annotations.summary -}}
	{{- cut 500 (default "an alert without a name" $text) -}}
	{{- with .labels.instance }}{{ if not (contains . $text) }} ({{ . }}){{ end }}{{ end -}}
{{- end -}}
{{- if .message }}{{ .message }}{{ else }}{{- $firing := without "status" "resolved" .alerts -}}
{{- $resolved := where "status" "resolved" .alerts -}}
{{- range first 20 $firing -}}
Firing: {{ template "alert" . }}
{{ end -}}
{{- with more 20 $firing }}and {{ . }} more
{{ end -}}
{{- range first 10 $resolved -}}
Resolved: {{ template "alert" . }}
{{ end -}}
{{- with more 10 $resolved }}and {{ . }} more resolved
{{ end -}}
{{- with .truncatedAlerts }}{{ . }} more were left out by the sender
{{ end -}}{{- $first := index .alerts 0 -}}
{{- default (default .externalURL $first.generatorURL) (default $first.dashboardURL $first.panelURL) }}{{ end }}`,
			Type:   `{{ if eq .status "resolved" }}success{{ else }}{{ default "failure" (type (default .commonLabels.severity .groupLabels.severity)) }}{{ end }}`,
			Tag:    `{{ .commonLabels.severity }}`,
			Format: `{{ if .message }}markdown{{ end }}`,
			Images: `{{ range first 3 .alerts }}{{ .imageURL }}
{{ end }}`,
		},
	})
}
