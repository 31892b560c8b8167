package source

func init() {
	register(Format{
		Name:    "grafana",
		Program: "Grafana",
		Doc:     "https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/",
		Checked: "2026-08-06",
		Scheme:  schemeGrafana,
		Templates: Templates{
			Title: `{{ default ` + alertsTitle + ` .title }}`,
			Body: alertDefinition + `{{- if .message }}{{ .message }}{{ else }}` + alertsList + `{{- $first := index .alerts 0 -}}
{{- default (default .externalURL $first.generatorURL) (default $first.dashboardURL $first.panelURL) }}{{ end }}`,
			Type:   alertsType,
			Tag:    alertsTag,
			Format: `{{ if .message }}markdown{{ end }}`,
			Images: `{{ range first 3 .alerts }}{{ .imageURL }}
{{ end }}`,
		},
	})
}
