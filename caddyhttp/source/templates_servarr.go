package source

// Parts of the templates for Radarr and Sonarr, which have similar payloads.
const (
	servarrEvent = `{{ .eventType }}{{ if .isUpgrade }} (upgrade){{ end -}}`

	// servarrDetails is the end of the body. $file must be the imported file.
	servarrDetails = `{{- with .message }}
{{ . }}{{ end -}}
{{- with default .release.quality $file.quality }}
Quality: {{ . }}{{ end -}}
{{- with default .release.size $file.size }}
Size: {{ size . }}{{ end -}}
{{- with .release.indexer }}
Indexer: {{ . }}{{ end -}}
{{- range first 5 .downloadStatusMessages }}
{{ .title }}: {{ join "; " .messages }}{{ end -}}
{{- with .newVersion }}
{{ $.previousVersion }} to {{ . }}{{ end -}}
{{- with .wikiUrl }}
{{ . }}{{ end }}`

	servarrType = `{{ if eq .eventType "Download" "HealthRestored" }}success{{ else if eq .eventType "Health" }}{{ default "warning" (type .level) }}{{ else if eq .eventType "ManualInteractionRequired" }}warning{{ end }}`

	// servarrPoster ends a template that begins with a range over the images.
	servarrPoster = `{{ if eq .coverType "poster" }}{{ .remoteUrl }}{{ end }}{{ end }}`
)
