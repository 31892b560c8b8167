package source

func init() {
	register(Format{
		Name:    "alertmanager",
		Program: "Prometheus Alertmanager",
		Doc:     "https://prometheus.io/docs/alerting/latest/configuration/#webhook_config",
		Checked: "0.34.0",
		Templates: Templates{
			Title: `{{ ` + alertsTitle + ` }}`,
			Body: alertDefinition + alertsList + `{{- with .commonAnnotations.runbook_url }}{{ . }}
{{ end -}}
{{- .externalURL }}`,
			Type: alertsType,
			Tag:  alertsTag,
		},
	})
}
