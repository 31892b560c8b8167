package source

// The parts of templates for Radarr and Sonarr, whose webhooks have the same
// form.
const (
	servarrEvent = `{{ .eventType }}{{ if .isUpgrade }} (upgrade){{ end -}}`

	// servarrDetails is the end of the body. $file is the file that was imported.
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

	// servarrPoster is the rest of a template that begins with the range of
	// the images.
	servarrPoster = `{{ if eq .coverType "poster" }}{{ .remoteUrl }}{{ end }}{{ end }}`
)
