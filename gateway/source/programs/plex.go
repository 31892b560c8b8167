package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "plex",
		Program: "Plex",
		Doc:     "https://support.plex.tv/articles/115002267687-webhooks/",
		Checked: "2026-08-05",
		Has:     []string{"event", "Account|Server|Metadata|Player"},
		Field:   "payload",
		Files:   true,
		Templates: source.Templates{
			Title: `{{ default "Plex" .event }}{{ with default .Metadata.title .Metadata.grandparentTitle }}: {{ . }}{{ end }}`,
			Body: `{{ with .Metadata }}{{ if .grandparentTitle }}{{ if eq .type "episode" }}S{{ printf "%02v" .parentIndex }}E{{ printf "%02v"
	.index }} {{ end }}{{ .title }}
{{ else }}{{ .title }}{{ with .year }} ({{ . }}){{ end }}
{{ end }}{{ with .librarySectionTitle }}Library: {{ . }}
{{ end }}{{ end }}
{{- with .rating }}Rating: {{ . }}
{{ end }}
{{- with .Account.title }}User: {{ . }}
{{ end }}
{{- with .Player.title }}Player: {{ . }}
{{ end }}
{{- with .Server.title }}Server: {{ . }}{{ end }}`,
			Type: `{{ if eq .event "admin.database.corrupted" }}failure{{ else if eq .event "admin.database.backup" }}success{{ else ` +
				`}}info{{ end }}`,
		},
	})
}
