package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// RulerTemplates are those of the alerts that rulers post. The gateway makes the payload from
// what it knows of a group: it is that of Alertmanager, with the alerts that are no longer
// reported in lost.
var RulerTemplates = source.Templates{
	Title: `{{ ` + alertsTitle + ` }}`,
	Body: alertsList + `{{- range first 10 .lost }}No longer reported` + alertLine + `
{{ end -}}
{{- with more 10 .lost }}and {{ . }} more no longer reported
{{ end -}}
{{- $first := index .alerts 0 }}{{ if not $first }}{{ $first = index .lost 0 }}{{ end }}{{ $first.generatorURL }}`,
	Type:   `{{ if and .lost (eq .status "resolved") }}warning{{ else }}` + alertsType + `{{ end }}`,
	Tag:    alertsTag,
	Alerts: alertsOpen,
}
