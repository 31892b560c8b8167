package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// Version 2 has the fields of Sonarr without numbers of episodes, version 3 the fields of Radarr.
func init() {
	source.Register(source.Format{
		Name:    "whisparr",
		Program: "Whisparr",
		Doc:     "https://wiki.servarr.com/whisparr/settings#connect",
		Checked: "2.0.0 of 2024-04-08 and 3.0.0 of 2024-10-14",
		Has: []string{
			"eventType", "series|episodes|movie|remoteMovie|level|message|newVersion|instanceName",
			"series|episodes|movie|remoteMovie|instanceName~Whisparr?", "instanceName~Whisparr?",
		},
		Templates: source.Templates{
			Title: `{{ default (default (default "Whisparr" .instanceName) .movie.title) .series.title }}`,
			Body: servarrEvent + `
{{- range first 20 .episodes }}
{{ with .airDate }}{{ . }} {{ end }}{{ .title }}{{ end -}}
{{- with more 20 .episodes }}
and {{ . }} more{{ end -}}
{{- $file := default .movieFile .episodeFile }}` + servarrDetails,
			Type:     servarrType,
			Incident: servarrIncident,
		},
	})
}
