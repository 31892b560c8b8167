package source

func init() {
	register(Format{
		Name:    "sonarr",
		Program: "Sonarr",
		Doc:     "https://wiki.servarr.com/sonarr/settings#connect",
		Checked: "4.0.13",
		Templates: Templates{
			Title: `{{ default (default "Sonarr" .instanceName) .series.title }}`,
			Body: `{{ .eventType }}{{ if .isUpgrade }} (upgrade){{ end -}}
{{- range first 20 .episodes }}
S{{ printf "%02v" .seasonNumber }}E{{ printf "%02v" .episodeNumber }} {{ .title }}{{ end -}}
{{- with more 20 .episodes }}
and {{ . }} more{{ end -}}
{{- with .message }}
{{ . }}{{ end -}}
{{- with default .release.quality .episodeFile.quality }}
Quality: {{ . }}{{ end -}}
{{- with default .release.size .episodeFile.size }}
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
			Images: `{{ range .series.images }}{{ if eq .coverType "poster" }}{{ .remoteUrl }}{{ end }}{{ end }}`,
		},
	})
}
