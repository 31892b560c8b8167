package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "lidarr",
		Program: "Lidarr",
		Doc:     "https://wiki.servarr.com/lidarr/settings#connect",
		Checked: "2.14.5",
		Has: []string{
			"eventType", "artist|album|albums|releaseTitle|level|message|newVersion|instanceName",
			"artist|album|albums|releaseTitle|instanceName~Lidarr?", "instanceName~Lidarr?",
		},
		Templates: source.Templates{
			Title: `{{ $album := default (index .albums 0) .album -}}
{{ with .artist.name }}{{ . }}{{ with $album.title }}: {{ . }}{{ end }}{{ with more 1 $.albums }} and {{ . }} more{{ end }}{{ else }}{{
	default "Lidarr" .instanceName }}{{ end }}`,
			// The files of an album have the same quality.
			Body: servarrEvent + `
{{- with .tracks }}
{{ len . }} {{ if eq (len .) 1 }}track{{ else }}tracks{{ end }}{{ end -}}
{{- $file := "" }}{{ with .trackFile }}{{ $file = . }}{{ else }}{{ with .trackFiles }}
Quality: {{ (index . 0).quality }}{{ end }}{{ end -}}` + servarrDetails,
			Type: servarrType,
			Images: `{{ range .album.images }}{{ if eq .coverType "cover" }}{{ .remoteUrl }}
{{ end }}{{ end }}{{ range .artist.images }}` + servarrPoster,
			Incident: servarrIncident,
		},
	})
}
