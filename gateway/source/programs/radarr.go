package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "radarr",
		Program: "Radarr",
		Doc:     "https://wiki.servarr.com/radarr/settings#connect",
		Checked: "6.0.3",
		Has: []string{
			"eventType", "movie|remoteMovie|movieFile|movies|level|message|newVersion|instanceName",
			"movie|remoteMovie|instanceName~Radarr?", "instanceName~Radarr?",
		},
		Templates: source.Templates{
			Title: `{{ with .movie.title }}{{ . }}{{ with $.movie.year }} ({{ . }}){{ end }}{{ else }}{{ default "Radarr" .instanceName }}{{ end }}`,
			Body: servarrEvent + `
{{- $file := .movieFile }}` + servarrDetails,
			Type:     servarrType,
			Images:   `{{ range .movie.images }}` + servarrPoster,
			Incident: servarrIncident,
		},
	})
}
