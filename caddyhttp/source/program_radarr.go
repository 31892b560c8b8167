package source

func init() {
	register(Format{
		Name:    "radarr",
		Program: "Radarr",
		Doc:     "https://wiki.servarr.com/radarr/settings#connect",
		Checked: "6.0.3",
		Templates: Templates{
			Title: `{{ with .movie.title }}{{ . }}{{ with $.movie.year }} ({{ . }}){{ end }}{{ else }}{{ default "Radarr" .instanceName }}{{ end }}`,
			Body: `{{ .eventType }}{{ if .isUpgrade }} (upgrade){{ end -}}
{{- with .message }}
{{ . }}{{ end -}}
{{- with default .release.quality .movieFile.quality }}
Quality: {{ . }}{{ end -}}
{{- with default .release.size .movieFile.size }}
Size: {{ size . }}{{ end -}}
{{- with .release.indexer }}
Indexer: {{ . }}{{ end -}}
{{- range first 5 .downloadStatusMessages }}
{{ .title }}: {{ join "; " .messages }}{{ end -}}
{{- with .newVersion }}
{{ $.previousVersion }} to {{ . }}{{ end -}}
{{- with .wikiUrl }}
{{ . }}{{ end }}`,
			Type:   `{{ if eq .eventType "Download" "HealthRestored" }}success{{ else if eq .eventType "Health" }}{{ default "warning" (type .level) }}{{ else if eq .eventType "ManualInteractionRequired" }}warning{{ end }}`,
			Images: `{{ range .movie.images }}{{ if eq .coverType "poster" }}{{ .remoteUrl }}{{ end }}{{ end }}`,
		},
	})
}
