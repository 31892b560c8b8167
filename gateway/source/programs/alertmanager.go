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
			// The alerts of one rule have the same generatorURL. The page of all alerts is
			// that of Alertmanager's own mails.
			Body: alertsList + `{{- $first := index .alerts 0 -}}
{{- if and $first.generatorURL (eq (len (where "generatorURL" $first.generatorURL .alerts)) (len .alerts)) }}{{ $first.generatorURL }}
{{- else if and .receiver (eq .version "4") .externalURL }}{{ .externalURL }}/#/alerts?receiver={{ urlquery .receiver }}
{{- else }}{{ default $first.generatorURL .externalURL }}{{ end }}`,
			Type: alertsType,
			Tag:  alertsTag,
			// The status of a group is resolved when all alerts that are listed are. The key of a
			// group is unique within one Alertmanager.
			Incident: `{{ if .groupKey }}{{ .externalURL }} {{ .groupKey }}{{ end }}`,
			Alerts:   alertsOpen,
			Partial:  alertsPartial,
		},
	})
}
