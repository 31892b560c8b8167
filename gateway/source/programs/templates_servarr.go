package programs

// Parts of the templates for Sonarr, Radarr, Lidarr, Readarr, Prowlarr and Whisparr, which
// have similar payloads.
const (
	// servarrEvent says what has happened.
	servarrEvent = `{{ $event := .eventType -}}
{{ if eq $event "Health" }}Health issue
{{- else if eq $event "HealthRestored" }}Health restored
{{- else if eq $event "ManualInteractionRequired" }}Manual interaction required
{{- else if eq $event "ApplicationUpdate" }}Updated
{{- else if eq $event "DownloadFailure" }}Download failed
{{- else if eq $event "ImportFailure" }}Import failed
{{- else if eq $event "Grab" }}Grabbed
{{- else if eq $event "Download" }}{{ if .isUpgrade }}Upgraded{{ else }}Imported{{ end }}
{{- else if eq $event "Rename" }}Renamed
{{- else if eq $event "Retag" }}Retagged
{{- else if hasSuffix "FileDelete" $event }}File deleted
{{- else if hasSuffix "Delete" $event }}Deleted{{ if eq .deletedFiles true }}, with its files{{ end }}
{{- else if or (hasSuffix "Add" $event) (hasSuffix "Added" $event) }}Added
{{- else }}{{ $event }}{{ end }}`

	// servarrDetails is the end of the body. $file must be the imported file.
	servarrDetails = `{{- with .message }}
{{ . }}{{ end -}}
{{- with default .release.releaseTitle .releaseTitle }}
Release: {{ . }}{{ end -}}
{{- with default (default (default .quality .downloadInfo.quality) .release.quality) $file.quality }}
Quality: {{ . }}{{ end -}}
{{- with default (default .downloadInfo.size .release.size) $file.size }}
Size: {{ size . }}{{ end -}}
{{- with .release.indexer }}
Indexer: {{ . }}{{ end -}}
{{- range first 5 .downloadStatusMessages }}
{{ .title }}: {{ join "; " .messages }}{{ end -}}
{{- if and .newVersion (not .message) }}
{{ .previousVersion }} to {{ .newVersion }}{{ end -}}
{{- with .wikiUrl }}
{{ . }}{{ end }}`

	servarrType = `{{ if eq .eventType "Download" "HealthRestored" }}success
{{- else if eq .eventType "Health" }}{{ default "warning" (type .level) }}
{{- else if eq .eventType "ManualInteractionRequired" "DownloadFailure" "ImportFailure" }}warning{{ end }}`

	// servarrIncident is the health check of a message.
	servarrIncident = `{{ if eq .eventType "Health" "HealthRestored" }}{{ .instanceName }} {{ .type }}{{ end }}`

	// servarrPoster ends a template that begins with a range over the images.
	servarrPoster = `{{ if eq .coverType "poster" }}{{ .remoteUrl }}{{ end }}{{ end }}`
)
