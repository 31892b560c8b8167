package source

// Parts of the templates for a group of alerts. Grafana uses the format of Prometheus
// Alertmanager.
const (
	// alertsTitle is an expression for the name that the alerts share, or the labels of
	// the group.
	alertsTitle = `(default (default "Alerts" (join ", " (pairs .groupLabels))) (default .commonLabels.alertname .groupLabels.alertname))`

	// alertDefinition defines the template of one alert.
	alertDefinition = `{{- define "alert" -}}
	{{- $text := default .labels.alertname .annotations.description -}}
	{{- $text = default $text .annotations.message -}}
	{{- $text = default $text .annotations.summary -}}
	{{- cut 500 (default "an alert without a name" $text) -}}
	{{- with .labels.instance }}{{ if not (contains . $text) }} ({{ . }}){{ end }}{{ end -}}
{{- end -}}`

	// alertsList lists the firing alerts, and then the resolved ones. It needs
	// alertDefinition before it.
	alertsList = `{{- $firing := without "status" "resolved" .alerts -}}
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
{{ end -}}`

	alertsType = `{{ if eq .status "resolved" }}success{{ else }}{{ default "failure" (type (default .commonLabels.severity .groupLabels.severity)) }}{{ end }}`
	alertsTag  = `{{ .commonLabels.severity }}`
)
