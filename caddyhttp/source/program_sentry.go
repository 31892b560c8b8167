package source

func init() {
	register(Format{
		Name:    "sentry",
		Program: "Sentry",
		Doc:     "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
		Scheme:  schemeSentry,
		Templates: Templates{
			Title: `{{ $d := .data }}{{ $error := default $d.error $d.event }}{{ default (default (default "Sentry" $d.description_title) $d.issue.title) $error.title }}`,
			Body: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ with $d.triggered_rule }}Rule: {{ . }}
{{ end }}
{{- with $d.description_text }}{{ . }}
{{ end }}
{{- with $d.comment }}{{ . }}
{{ end }}
{{- if $d.issue }}Issue {{ $.action }}
{{ end }}
{{- with default $d.issue.culprit $error.culprit }}{{ . }}
{{ end }}
{{- with $error.environment }}Environment: {{ . }}
{{ end }}
{{- default (default $d.web_url $d.issue.web_url) $error.web_url }}`,
			Type: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ if eq .action "resolved" }}success{{ else if $d.metric_alert }}{{ type .action }}{{ else }}{{ type (default $d.issue.level $error.level) }}{{ end }}`,
		},
	})
}
