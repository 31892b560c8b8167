package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "sonarr",
		Program: "Sonarr",
		Doc:     "https://wiki.servarr.com/sonarr/settings#connect",
		Checked: "4.0.13",
		Has: []string{
			"eventType", "series|episodes|episodeFile|level|message|newVersion|instanceName",
			"series|episodes|instanceName~Sonarr?", "episodes[].episodeNumber|instanceName~Sonarr?",
		},
		Templates: source.Templates{
			Title: `{{ default (default "Sonarr" .instanceName) .series.title }}`,
			Body: servarrEvent + `
{{- range first 20 .episodes }}
S{{ printf "%02v" .seasonNumber }}E{{ printf "%02v" .episodeNumber }} {{ .title }}{{ end -}}
{{- with more 20 .episodes }}
and {{ . }} more{{ end -}}
{{- $file := .episodeFile }}` + servarrDetails,
			Type:     servarrType,
			Images:   `{{ range .series.images }}` + servarrPoster,
			Incident: servarrIncident,
		},
	})
}
