package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "healthchecks",
		Program: "Healthchecks",
		Doc:     "https://healthchecks.io/docs/configuring_notifications/",
		Checked: "4.3",
		Has:     []string{"name", "status", "last_ping|n_pings|grace?"},
		Templates: source.Templates{
			Title: `{{ default "A check" .name }} is {{ default "unknown" .status }}`,
			Body: `{{ with .desc }}{{ . }}
{{ end }}
{{- with .last_ping }}Last ping: {{ date "2006-01-02 15:04 MST" . }}
{{ end }}
{{- with .timeout }}Period: {{ duration . }}
{{ end }}
{{- with .schedule }}Schedule: {{ . }} {{ $.tz }}
{{ end }}
{{- with .tags }}Tags: {{ . }}{{ end }}`,
			Type:     `{{ type .status }}`,
			Tag:      `{{ .tags }}`,
			Incident: `{{ default .code .uuid }}`,
		},
	})
}
