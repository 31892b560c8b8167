package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "harbor",
		Program: "Harbor",
		Doc:     "https://goharbor.io/docs/main/working-with-projects/project-configuration/configure-webhooks/",
		Checked: "2.13",
		Has:     []string{"type", "event_data", "occur_at"},
		Templates: source.Templates{
			Title: `{{ with .event_data.repository.repo_full_name }}{{ . }}: {{ end }}{{ lower (replace "_" " " .type) }}`,
			Body: `{{ with .event_data.custom_attributes.Details }}{{ . }}
{{ end }}
{{- range .event_data.resources }}{{ .resource_url }}
{{ end }}
{{- with .operator }}By {{ . }}{{ end }}`,
			Type: `{{ if eq .type "SCANNING_FAILED" "QUOTA_EXCEED" }}failure{{ else if eq .type "QUOTA_WARNING" }}warning{{ else }}info{{ end }}`,
		},
	})
}
