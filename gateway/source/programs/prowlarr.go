package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "prowlarr",
		Program: "Prowlarr",
		Doc:     "https://wiki.servarr.com/prowlarr/settings#notifications",
		Checked: "2.3.5",
		Has: []string{
			"eventType", "release|level|message|newVersion|instanceName",
			"trigger|host|instanceName~Prowlarr?", "instanceName~Prowlarr?",
		},
		Templates: source.Templates{
			Title: `{{ default (default "Prowlarr" .instanceName) .release.releaseTitle }}`,
			Body: servarrEvent + `
{{- with .source }} by {{ . }}{{ with $.host }} ({{ . }}){{ end }}{{ end -}}
{{- with .message }}
{{ . }}{{ end -}}
{{- with .release.categories }}
Category: {{ join ", " . }}{{ end -}}
{{- with .release.size }}
Size: {{ size . }}{{ end -}}
{{- with .release.indexer }}
Indexer: {{ . }}{{ end -}}
{{- with .wikiUrl }}
{{ . }}{{ end }}`,
			Type:     servarrType,
			Incident: servarrIncident,
		},
	})
}
