package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "alertmanager",
		Program: "Prometheus Alertmanager",
		Doc:     "https://prometheus.io/docs/alerting/latest/configuration/#webhook_config",
		Checked: "0.34.0",
		Has:     []string{"alerts[].labels|alerts[].annotations", "version=4?"},
		Reads:   []string{"grafana"},
		Templates: source.Templates{
			Title: `{{ ` + alertsTitle + ` }}`,
			// The alerts of one rule have the same generatorURL. Alertmanager's own mails link to
			// the same page of all alerts.
			Body: alertsList + `{{- $first := index .alerts 0 -}}
{{- if and $first.generatorURL (eq (len (where "generatorURL" $first.generatorURL .alerts)) (len .alerts)) }}{{ $first.generatorURL }}
{{- else if and .receiver (eq .version "4") .externalURL }}{{ .externalURL }}/#/alerts?receiver={{ urlquery .receiver }}
{{- else }}{{ default $first.generatorURL .externalURL }}{{ end }}`,
			Type: alertsType,
			Tag:  alertsTag,
			// A group is resolved when all its listed alerts are. Its key is unique within one
			// Alertmanager.
			Incident: `{{ if .groupKey }}{{ .externalURL }} {{ .groupKey }}{{ end }}`,
			Alerts:   alertsOpen,
			Partial:  alertsPartial,
		},
	})
}
