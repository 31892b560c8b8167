package source

func init() {
	register(Format{
		Name:    "alertmanager",
		Program: "Prometheus Alertmanager",
		Doc:     "https://prometheus.io/docs/alerting/latest/configuration/#webhook_config",
		Checked: "0.34.0",
		Templates: Templates{
			Title: `{{ default (default "Alerts" (join ", " (pairs .groupLabels))) (default .commonLabels.alertname .groupLabels.alertname) }}`,
			Body: `{{- define "alert" -}}
	{{- $text := default .labels.alertname .annotations.description -}}
	{{- $text = default $text .annotations.message -}}
	{{- $text = default $text .annotations.summary -}}
	{{- cut 500 (default "an alert without a name" $text) -}}
	{{- with .labels.instance }}{{ if not (contains . $text) }} ({{ . }}){{ end }}{{ end -}}
{{- end -}}
{{- $firing := without "status" "resolved" .alerts -}}
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
{{ end -}}{{- with .commonAnnotations.runbook_url }}{{ . }}
{{ end -}}
{{- .externalURL }}`,
			Type: `{{ if eq .status "resolved" }}success{{ else }}{{ default "failure" (type (default .commonLabels.severity .groupLabels.severity)) }}{{ end }}`,
			Tag:  `{{ .commonLabels.severity }}`,
		},
	})
}
