package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "watchtower",
		Program: "Watchtower",
		Doc:     "https://watchtower.nickfedor.com/latest/notifications/introduction/",
		Checked: "1.21.0; shoutrrr 0.13.2 and containrrr/shoutrrr 0.8.0",
		Has:     []string{"message|report|entries", "report|entries?"},
		Text:    "message",
		Templates: source.Templates{
			Title: `{{ default (default "Watchtower" .host) .title }}`,
			// Without a report, as with the notification template json.v1, the text is in message.
			Body: `{{ if .report }}{{ range first 20 .report.updated }}Updated: {{ .name }} ({{ .imageName }})
{{ end }}{{ with more 20 .report.updated }}and {{ . }} more
{{ end }}{{ range first 20 .report.failed }}Failed: {{ .name }} ({{ .imageName }}){{ with .error }}: {{ . }}{{ end }}
{{ end }}{{ with more 20 .report.failed }}and {{ . }} more failed
{{ end }}{{ len .report.scanned }} scanned
{{- else if .entries }}{{ range first 20 .entries }}{{ .message }}
{{ end }}{{ with more 20 .entries }}and {{ . }} more{{ end }}
{{- else }}{{ .message }}{{ end }}`,
			Type: `{{ if .report.failed }}failure{{ else if or (where "level" "error" .entries) (where "level" "fatal" .entries) }}failure{{ ` +
				`else }}info{{ end }}`,
		},
	})
}
